# Everything that checks the sources and the programs.

asan: ## run all tests of the programs with the address and undefined-behaviour sanitizers
	$(MAKE_NOW) check-all BUILD=$(BUILD)/asan SANITIZE=address,undefined ARGS='$(or $(ARGS),unit contract e2e)'

tsan: ## run all tests of the programs with the thread sanitizer
	$(MAKE_NOW) check-all BUILD=$(BUILD)/tsan SANITIZE=thread ARGS='$(or $(ARGS),unit contract e2e)'

# An order of each strategy and its steps, lost and refused COMMITs, keys, pipelining; each service is ended by SIGTERM.
VALGRIND_TESTS := one_client_at_a_time or steps_of_an_order or (commit and select-for-update) or sixteen_pipelined \
                  or a_retry_gives_the_first_order_again or a_replay_in_a_batch or (one_holds_and_the_other_waits and redis-lock)
valgrind: ## run end-to-end tests of the service under valgrind, for some minutes (ARGS="-k …")
	$(call install_packages,$(DEPS) $(DEPS_TEST) valgrind libc6-dbg)
	$(BUILD_NOW) programs
	@install -D -t $(BUILD)/valgrind tests/valgrind/order-service tests/valgrind/suppressions
	@BUILD=$(BUILD)/valgrind tests/run e2e $(or $(ARGS),-k '$(VALGRIND_TESTS)')

FUZZ_SECONDS ?= 60
fuzz: ## fuzz every parser under the sanitizers (FUZZ_SECONDS=3600 for each)
	$(MAKE_NOW) deps-test
	$(BUILD_NOW) $(FUZZ_BUILD) fuzz-programs
	$(BUILD_NOW) programs
	$(BUILD_NOW) programs BUILD=$(BUILD)/asan SANITIZE=address,undefined
	@BUILD=$(BUILD)/fuzz tests/fuzz/run $(FUZZ_SECONDS)
	@BUILD=$(BUILD)/asan FUZZ_SECONDS=$(FUZZ_SECONDS) tests/run e2e -s -k mutated_streams
	@BUILD=$(BUILD) FUZZ_SECONDS=$(FUZZ_SECONDS) tests/run e2e -s -k mutated_streams  # which can tell whether it grows

TORTURE ?= all
torture: ## make each call of an order fail, one after another, under the sanitizers; hours (TORTURE=redis-lock,etcd)
	$(MAKE_NOW) deps-test
	$(BUILD_NOW) programs tests BUILD=$(BUILD)/asan SANITIZE=address,undefined
	@BUILD=$(BUILD)/asan TORTURE='$(TORTURE)' tests/run e2e -s -k each_call_fails_in_turn

# The counts of all runs add up in build/coverage. Remove that folder to start from zero.
coverage: ## print which lines the tests run; details in build/coverage/index.html (ARGS="unit")
	$(call install_packages,$(DEPS) $(DEPS_TEST) gcovr)
	$(MAKE_NOW) check-all BUILD=$(BUILD)/coverage CFLAGS='$(CFLAGS) --coverage' LDFLAGS='$(LDFLAGS) --coverage' ARGS='$(ARGS)'
	gcovr --root . --object-directory $(BUILD)/coverage --exclude tests/ --exclude exercises/ --print-summary \
	    --html-details $(BUILD)/coverage/index.html --txt $(BUILD)/coverage/coverage.txt

# Without gcc 12's leak checks, which take what is stored through a pointer for lost: clang-tidy and the leak
# sanitizer look for leaks.
analyze: ## run gcc's static analyzer
	$(MAKE_NOW) deps-test
	$(BUILD_NOW) --keep-going programs BUILD=$(BUILD)/analyze CC=gcc \
	    CFLAGS='$(CFLAGS) -fanalyzer -Werror -Wno-analyzer-malloc-leak -Wno-analyzer-file-leak'

mutants: ## apply each patch of tests/mutants, and fail if its check does not catch it; 30 minutes (ARGS="--sample 4")
	$(MAKE_NOW) deps-test
	$(BUILD_NOW) all
	+@BUILD=$(BUILD) tests/mutants/run $(ARGS)

SOURCES  := $(foreach l,$(LAYERS) $(LOCKRUN) $(LOCKBENCH),$(call c_sources,$(l))) $(TEST_SOURCES) \
            $(wildcard tests/contract/*.c tests/fuzz/*.c tests/torture/*.c) $(wildcard exercises/*/*.c)
HEADERS  := $(sort $(shell find $(LAYERS) $(LOCKRUN) $(LOCKBENCH) tests/unit tests/fuzz -name '*.h'))
SCRIPTS  := stack/stack $(wildcard stack/*.sh) $(addprefix stack/container/,install keys with-keys postgres redis zookeeper) tests/run tests/fuzz/run tests/mutants/run make/install-packages make/node-pg make/node-orms make/axe-core make/build-failed tests/valgrind/order-service .ci/run docs/insert docs/workshop/shell

compile_commands.json: make/build.mk make/packages.mk Makefile $(SOURCES) ## write the compiler commands for clangd and other tools
	@printf '%s\n' $(SOURCES) | python3 -c 'import json, sys; json.dump([{"directory": sys.argv[1], "file": f.strip(), \
	    "command": sys.argv[2] + " -c " + f.strip()} for f in sys.stdin], sys.stdout, indent=1)' '$(CURDIR)' '$(CC) $(OUR_CFLAGS)' >$@

lint: ## run clang-tidy and shellcheck, and check includes and words
	$(MAKE_NOW) deps-lint
	$(BUILD_NOW) --keep-going lint-includes lint-words lint-shell lint-tidy

lint-includes:
	tests/lint/includes

lint-words:
	tests/lint/words

lint-shell:
	shellcheck $(SCRIPTS)

# A source is looked at again when it, a header of it or the list of checks has changed, as its object says.
lint-tidy: $(patsubst %.c,$(BUILD)/tidy/%.clean,$(SOURCES))

$(BUILD)/tidy/%.clean: $(BUILD)/obj/%.o .clang-tidy
	@mkdir -p $(@D)
	$(call say,TIDY,$*.c)clang-tidy --quiet $*.c -- $(OUR_CFLAGS) >$@.log 2>&1 || { grep -v 'warnings.* generated' $@.log; exit 1; }
	@mv $@.log $@

format: deps-lint ## format every source as .clang-format says
	clang-format -i $(SOURCES) $(HEADERS)

format-check: deps-lint ## fail if `make format` would change a source
	clang-format --dry-run -Werror $(SOURCES) $(HEADERS)
