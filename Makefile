# Builds the order service, the load test and their tests, and runs them against a private stack.
#
#   make              build everything            make BUILD=build/asan SANITIZE=address,undefined
#   make help         list the targets            make CC=clang · make V=1 (whole commands) · make WERROR=1 (warnings are errors)

BUILD    ?= build
# One name, or make would know a file by two, and not what it depends on.
override BUILD := $(patsubst $(CURDIR)/%,%,$(BUILD))
SANITIZE ?=
WERROR   ?=
PREFIX   ?= /usr/local
DESTDIR  ?=

ifeq ($(origin CC),default)
CC := gcc
endif
PKG_CONFIG ?= pkg-config

# ---- what is built from what ----------------------------------------------------------------------

comma := ,

# A layer uses those before it. tests/lint/includes knows the folders within them.
LAYERS       := base db lock service loadtest
LOCKRUN      := tools/lockrun
# What is preloaded into servers is no part of the layer in whose folder it lies.
c_sources     = $(sort $(shell find $(1) -name '*.c' -not -path '*/preload/*'))
asm_sources   = $(sort $(shell find $(1) -name '*.S'))
objects       = $(patsubst %.c,$(BUILD)/obj/%.o,$(call c_sources,$(1))) \
                $(patsubst %,$(BUILD)/obj/%.o,$(call asm_sources,$(1)))
library       = $(BUILD)/liboversell-$(1).a

MAINS        := $(BUILD)/obj/service/main.o $(BUILD)/obj/loadtest/cli/main.o
LIBRARIES    := $(foreach l,$(LAYERS),$(call library,$(l)))
ENGINE_LIBRARIES := $(foreach l,base db lock service,$(call library,$(l)))
TEST_SOURCES := $(wildcard tests/unit/*/test_*.c)
TESTS        := $(patsubst tests/unit/%.c,$(BUILD)/tests/%,$(TEST_SOURCES))
# What plays the contenders for locks in the contract tests.
LOCKPROBE    := $(if $(wildcard tests/contract/lockprobe.c),$(BUILD)/lockprobe)
# Makes calls of the C library fail in the service that the torture test starts.
TORTURE_SHIM := $(BUILD)/torture-shim.so
# What judges a learner's strategy.
JUDGE_OBJECTS := $(call objects,exercises/judge)
ALL_OBJECTS  := $(foreach l,$(LAYERS) $(LOCKRUN),$(call objects,$(l))) $(JUDGE_OBJECTS) \
                $(patsubst %.c,$(BUILD)/obj/%.o,$(TEST_SOURCES) $(wildcard tests/contract/*.c tests/fuzz/*.c tests/torture/*.c))

# A program is built once its main file exists.
PROGRAMS     := $(if $(wildcard service/main.c),$(BUILD)/order-service) \
                $(if $(wildcard tools/lockrun/main.c),$(BUILD)/lockrun) \
                $(if $(wildcard loadtest/cli/main.c),$(BUILD)/loadtest $(BUILD)/clock-shim.so $(BUILD)/disk-shim.so)

# ---- packages -------------------------------------------------------------------------------------

# hiredis 0.14, which is Debian 12's, has no TLS: rediss:// is then an error that says so.
HIREDIS_SSL   = $(eval HIREDIS_SSL := $$(shell $(PKG_CONFIG) --exists hiredis_ssl openssl 2>/dev/null && \
                  echo hiredis_ssl openssl))$(HIREDIS_SSL)
PKGS          = libmicrohttpd libpq jansson libcurl hiredis $(HIREDIS_SSL)
OTHER_LIBS   := -l:libzookeeper_st.so.2 # which has no .pc file; so named, it is found beside either -dev package
DEPS         := gcc libc6-dev pkg-config libmicrohttpd-dev libpq-dev libjansson-dev libcurl4-openssl-dev \
                libhiredis-dev libzookeeper-st-dev libcmocka-dev postgresql redis-server zookeeper etcd-server etcd-client \
                wrk gnuplot-nox curl python3 python3-pytest python3-yaml python3-jsonschema python3-redis python3-kazoo \
                chromium chromium-driver python3-selenium binutils systemd clang libclang-rt-dev
DEPS_TEST    := nginx-light
DEPS_LINT    := clang-tidy clang-format shellcheck

# Asked once and only when something is compiled, since `make deps` may be what installs pkg-config.
ask_packages  = $(or $(shell $(PKG_CONFIG) $(1) $(PKGS) 2>/dev/null),$(error libraries missing ($(PKGS)): run 'make deps'))
PKG_CFLAGS    = $(eval PKG_CFLAGS := $$(call ask_packages,--cflags))$(PKG_CFLAGS)
PKG_LIBS      = $(eval PKG_LIBS := $$(call ask_packages,--libs))$(PKG_LIBS)

# ---- flags ----------------------------------------------------------------------------------------

WARNINGS := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wwrite-strings -Wformat=2 \
            -Wconversion $(if $(WERROR),-Werror)

# What not every architecture has: marked places to jump to, and pages of stack that are touched one by one.
PROTECT   = $(eval PROTECT := $$(shell for flag in -fcf-protection=full -mbranch-protection=standard -fstack-clash-protection; do \
              $(CC) -Werror $$$$flag -c -o /dev/null -x c /dev/null 2>/dev/null && echo $$$$flag; done))$(PROTECT)

ifeq ($(SANITIZE),)
# Level 3 needs gcc 12 or clang 9 and glibc 2.35; an older pair warns, and level 2 is used.
FORTIFY   = $(eval FORTIFY := $$(shell $(CC) -O2 -Werror -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3 \
              -include features.h -E -x c /dev/null >/dev/null 2>&1 && echo 3 || echo 2))$(FORTIFY)
OPTIMIZE  = -O2 -g -fstack-protector-strong -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=$(FORTIFY) $(PROTECT)
else
OPTIMIZE  = -O1 -g -fno-omit-frame-pointer -fsanitize=$(SANITIZE) -fno-sanitize-recover=all
endif

CFLAGS   ?=
LDFLAGS  ?=
# Exceptions, so that a thread which ends in the middle of an order (explore's crash) frees what its frames hold.
OUR_CFLAGS  = -std=gnu17 -D_GNU_SOURCE -I. -pthread -fPIE -fexceptions $(OPTIMIZE) $(WARNINGS) $(PKG_CFLAGS) \
              $(if $(HIREDIS_SSL),-DHAVE_HIREDIS_SSL) $(CFLAGS)
OUR_LDFLAGS = -pie -pthread -Wl,-z,relro,-z,now,-z,noexecstack -Wl,--as-needed $(if $(SANITIZE),-fsanitize=$(SANITIZE)) $(LDFLAGS)

# ---- building -------------------------------------------------------------------------------------

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SUFFIXES:
.PHONY: all programs tests deps deps-test deps-lint demo run exercise exercise-tools hint solution explore-docs readme screenshot test faults soak bench \
        lint lint-includes lint-shell lint-tidy \
        format format-check asan tsan valgrind fuzz torture mutants analyze install clean help FORCE

all: $(PROGRAMS) $(TESTS) $(LOCKPROBE) $(TORTURE_SHIM) $(BUILD)/judge ## build the service, the load test and the unit tests (default)

programs: $(PROGRAMS)

tests: $(TESTS) $(LOCKPROBE) $(TORTURE_SHIM)

# One short line for each step; V=1 shows the whole commands.
say = $(if $(V),,@printf '  %-5s %s\n' '$(1)' '$(2)' && )

# Written only when they change, so that other flags or a removed source rebuild what they must.
write_if_changed = @mkdir -p $(@D); printf '%s\n' '$(subst ','\'',$(1))' | cmp -s - $@ || printf '%s\n' '$(subst ','\'',$(1))' >$@

$(BUILD)/obj/flags: FORCE
	$(call write_if_changed,$(CC) $(OUR_CFLAGS))

$(BUILD)/obj/link-flags: FORCE
	$(call write_if_changed,$(CC) $(OUR_LDFLAGS) $(PKG_LIBS) $(OTHER_LIBS))

$(BUILD)/obj/%.o: %.c $(BUILD)/obj/flags
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(OUR_CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/obj/%.S.o: %.S $(BUILD)/obj/flags
	@mkdir -p $(@D)
	$(call say,AS,$<)$(CC) $(OUR_CFLAGS) $(if $(filter -fcf-protection%,$(OPTIMIZE)),-include cet.h) -MMD -MP -c -o $@ $<

# Assembly embeds whole files with .incbin, which the compiler's dependency output does not list.
define embedded_files
$(BUILD)/obj/$(1).o: $(shell sed -n 's/.*\.incbin[[:space:]]*"\([^"]*\)".*/\1/p' $(1))
endef
$(foreach s,$(foreach l,$(LAYERS),$(call asm_sources,$(l))),$(eval $(call embedded_files,$(s))))

define layer_library
$(call library,$(1)): $(filter-out $(MAINS),$(call objects,$(1))) $(BUILD)/obj/$(1).list
	@rm -f $$@
	$$(call say,AR,$$@)$$(AR) qcs $$@ $$(filter %.o,$$^)

$(BUILD)/obj/$(1).list: FORCE
	$$(call write_if_changed,$(call objects,$(1)))
endef
$(foreach l,$(LAYERS),$(eval $(call layer_library,$(l))))

link = $(call say,LD,$@)$(CC) $(OUR_LDFLAGS) -o $@ $(filter %.o,$^) -Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(1) $(PKG_LIBS) $(OTHER_LIBS) -lm

$(BUILD)/order-service: $(BUILD)/obj/service/main.o $(ENGINE_LIBRARIES) $(BUILD)/obj/link-flags
	$(call link,)

$(BUILD)/lockrun: $(call objects,$(LOCKRUN)) $(ENGINE_LIBRARIES) $(BUILD)/obj/link-flags
	$(call link,)

$(BUILD)/lockprobe: $(BUILD)/obj/tests/contract/lockprobe.o $(ENGINE_LIBRARIES) $(BUILD)/obj/link-flags
	$(call link,)

$(BUILD)/loadtest: $(BUILD)/obj/loadtest/cli/main.o $(LIBRARIES) $(BUILD)/obj/link-flags
	$(call link,)

# Preloaded into servers of others, so without sanitizers.
$(BUILD)/%-shim.so: loadtest/preload/%.c $(wildcard loadtest/preload/*.h) $(BUILD)/obj/flags
	$(call say,LD,$@)$(CC) -std=gnu17 -D_GNU_SOURCE -I. -fPIC -shared -O2 -g $(WARNINGS) $(CFLAGS) -o $@ $<

# Preloaded before a sanitizer's library, so without one as well.
$(TORTURE_SHIM): tests/torture/preload.c $(BUILD)/obj/flags
	$(call say,LD,$@)$(CC) -std=gnu17 -D_GNU_SOURCE -fPIC -shared -pthread -O2 -g -fno-builtin -fno-omit-frame-pointer $(WARNINGS) $(CFLAGS) -o $@ $<

# A test's own object comes first, and the first definition of a symbol counts: so a test puts fakes in the
# place of what a library defines, even where another symbol brings that member in.
$(TESTS): $(BUILD)/tests/%: $(BUILD)/obj/tests/unit/%.o $(LIBRARIES) $(BUILD)/obj/link-flags
	@mkdir -p $(@D)
	$(call link,-Wl$(comma)-z$(comma)muldefs -lcmocka)

$(BUILD)/judge: $(JUDGE_OBJECTS) $(LIBRARIES) $(BUILD)/obj/link-flags
	$(call link,)

# Fuzz targets: built by clang, in a folder of their own (`make fuzz` calls itself with these settings), since all that they
# call is watched. As with the tests, a target's own definitions take the place of the libraries'.
FUZZ_SOURCES  := $(wildcard tests/fuzz/*.c)
FUZZ_NAMES    := $(patsubst tests/fuzz/%.c,%,$(FUZZ_SOURCES))
FUZZ_BUILD     = BUILD=$(BUILD)/fuzz CC=clang SANITIZE=fuzzer-no-link,address,undefined
FUZZ_EXPLORER := $(patsubst %,$(BUILD)/obj/loadtest/%.o,explore/core/schedule_notation explore/spec/figures explore/spec/scenario cli/options)

$(FUZZ_NAMES:%=$(BUILD)/run/%): $(BUILD)/run/%: $(BUILD)/obj/tests/fuzz/%.o $(FUZZ_EXPLORER) $(ENGINE_LIBRARIES) \
                                $(BUILD)/obj/link-flags
	@mkdir -p $(@D)
	$(call link,-fsanitize=fuzzer -Wl$(comma)-z$(comma)muldefs -lcmocka)

.PHONY: fuzz-programs
fuzz-programs: $(FUZZ_NAMES:%=$(BUILD)/run/%)

# A learner's file is a strategy table with one row. It is linked in the place of service/engine/strategies.c, into programs of
# their own.
EXERCISE        = $(BUILD)/exercise-$(NAME)
FILE           ?= exercises/$(NAME)/strategy.c
EXERCISE_LINKED = $(EXERCISE)/strategy.o $(LIBRARIES) $(BUILD)/obj/link-flags

$(EXERCISE)/which-file: FORCE
	$(call write_if_changed,$(FILE))

$(EXERCISE)/strategy.o: $(FILE) $(EXERCISE)/which-file $(BUILD)/obj/flags
	$(call say,CC,$<)$(CC) $(OUR_CFLAGS) -MMD -MP -c -o $@ $<

$(EXERCISE)/loadtest: $(BUILD)/obj/loadtest/cli/main.o $(EXERCISE_LINKED)
	$(call link,)

$(EXERCISE)/order-service: $(BUILD)/obj/service/main.o $(EXERCISE_LINKED)
	$(call link,)

-include $(ALL_OBJECTS:.o=.d) $(EXERCISE)/strategy.d

# ---- packages, running, testing -------------------------------------------------------------------

# On as many cores as there are, unless the caller has said how many jobs.
BUILD_NOW = +@$(MAKE) --no-print-directory $(if $(findstring -j,$(MAKEFLAGS)),,-j$(shell nproc))
MAKE_NOW  = +@$(MAKE) --no-print-directory

# The load test looks beside its build folder, which may lie elsewhere.
export OVERSELL_STACK     ?= $(CURDIR)/stack/stack
export OVERSELL_ORDER_LUA ?= $(CURDIR)/loadtest/compare/order.lua
export OVERSELL_PAGES_LUA ?= $(CURDIR)/loadtest/compare/pages.lua
export OVERSELL_KAZOO_LOCK ?= $(CURDIR)/loadtest/bench/kazoo_lock.py

# $(1): packages. Installs what is missing of them; where there is no apt it says what is needed and goes on.
define install_packages
@missing=; for p in $(1); do \
    dpkg-query -W -f '$${Status}' $$p 2>/dev/null | grep -q '^install ok installed' || missing="$$missing $$p"; \
done; \
[ -n "$$missing" ] || exit 0; \
command -v apt-get >/dev/null || { echo "no apt-get here; these Debian packages are needed:$$missing" >&2; exit 0; }; \
sudo=; if [ "$$(id -u)" -ne 0 ]; then \
    command -v sudo >/dev/null || { echo "not root and no sudo: install$$missing" >&2; exit 1; }; sudo=sudo; \
fi; \
install() { $$sudo env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=120 "$$@" </dev/null; }; \
echo "installing$$missing"; \
ls /var/lib/apt/lists/*_Packages* >/dev/null 2>&1 || install update || exit; \
install install -y --no-install-recommends $$missing || { install update && install install -y --no-install-recommends $$missing; }
endef

deps: ## install the Debian packages that are missing
	$(call install_packages,$(DEPS))

# What the tests need and the programs do not. Debian starts nginx at once and at each boot, on port 80 of every address.
deps-test: deps /usr/sbin/nginx ## install what the tests need as well

/usr/sbin/nginx:
	$(call install_packages,$(DEPS_TEST))
	@[ ! -x $@ ] || [ ! -d /run/systemd/system ] || $$([ "$$(id -u)" -eq 0 ] || echo sudo) systemctl disable --now nginx

deps-lint: deps ## install the linters as well
	$(call install_packages,$(DEPS_LINT))

demo: ## oversell: packages, build, a private database, every strategy under load by two processes (ARGS="--help")
	$(MAKE_NOW) deps
	$(BUILD_NOW) programs
	@$(BUILD)/loadtest compare $(ARGS)

run: ## the service with a private database in the foreground; Ctrl-C ends both (ARGS="--listen 127.0.0.1:8080")
	$(MAKE_NOW) deps
	$(BUILD_NOW) programs
	@stack/stack run all -- $(BUILD)/order-service $(ARGS)

test: ## every test, on private servers
	$(MAKE_NOW) deps-test
	$(BUILD_NOW) all
	@BUILD=$(BUILD) tests/run $(ARGS)

# A file that does not compile is judged as well.
exercise-tools: $(LIBRARIES) $(BUILD)/obj/service/main.o $(BUILD)/obj/loadtest/cli/main.o $(BUILD)/judge
	@:

exercise: ## judge a strategy of your own (NAME=1-guard; HINT=1 with hints, LIMIT=60s a check; exercises/README.md)
	$(BUILD_NOW) exercise-tools
	@$(BUILD)/judge hint '$(NAME)' >/dev/null
	@mkdir -p $(EXERCISE); rm -f $(EXERCISE)/loadtest
	+@$(MAKE) --no-print-directory V= -j2 $(EXERCISE)/loadtest $(EXERCISE)/order-service \
	    >$(EXERCISE)/build.log 2>&1 || rm -f $(EXERCISE)/loadtest
	@$(BUILD)/judge check '$(NAME)' --build $(EXERCISE) --hint '$(or $(HINT),0)' --limit '$(or $(LIMIT),60s)' \
	    --servers $(or $(SERVERS),private)

hint: $(BUILD)/judge ## a hint for an exercise (NAME=1-guard; HINT=2 for the second)
	@$(BUILD)/judge hint '$(NAME)' --hint '$(or $(HINT),1)'

solution: $(BUILD)/judge ## the solution of an exercise that has passed (NAME=1-guard)
	@$(BUILD)/judge solution '$(NAME)' --build $(EXERCISE)

# With faults there are thousands of schedules for each strategy, so those with the fewest preemptions; a safe one is only
# safe if all were run.
EXPLORED = $(foreach part,none crash expire crash-safe expire-safe,docs/results/explore-$(part).json)
explore-docs: programs ## explores every strategy anew, with each fault, for the matrix in docs/strategies.md
	@mkdir -p docs/results
	$(BUILD)/loadtest explore --export-json docs/results/explore-none.json
	$(BUILD)/loadtest explore --faults crash --bound 1 --export-json docs/results/explore-crash.json
	$(BUILD)/loadtest explore --faults expire --bound 1 --export-json docs/results/explore-expire.json
	$(BUILD)/loadtest explore --faults crash --strategies safe --export-json docs/results/explore-crash-safe.json
	$(BUILD)/loadtest explore --faults expire --strategies safe --export-json docs/results/explore-expire-safe.json
	docs/tables explore $(EXPLORED) >$(BUILD)/explore.md
	docs/insert explore $(BUILD)/explore.md docs/strategies.md

RUSH_STRATEGIES := select-for-update,atomic-decrement,atomic-statement,optimistic,redis-lock,batched

readme: all ## measures anew the table and the plot that README.md shows, docs/choosing.md, docs/performance.md and docs/rush.md
	@mkdir -p docs/results
	$(BUILD)/loadtest compare --export-json docs/results/compare.json \
	    --export-markdown $(BUILD)/compare.md --export-svg docs/results/compare.svg
	$(BUILD)/loadtest bench --export-json docs/results/bench.json --export-markdown $(BUILD)/bench.md
	{ sed '/^|/,$$d' $(BUILD)/compare.md; docs/tables compare docs/results/compare.json; sed '1,/^|/d; /^|/d' $(BUILD)/compare.md; } >$(BUILD)/table.md
	docs/insert compare $(BUILD)/table.md README.md
	docs/tables locks docs/results/compare.json >$(BUILD)/locks.md
	docs/insert locks $(BUILD)/locks.md docs/strategies.md
	docs/insert locks $(BUILD)/locks.md README.md
	docs/insert bench $(BUILD)/bench.md docs/performance.md
	docs/tables choosing docs/results/compare.json docs/results/bench.json >$(BUILD)/choosing.md
	docs/insert choosing $(BUILD)/choosing.md docs/choosing.md
	$(BUILD)/loadtest rush --strategies $(RUSH_STRATEGIES) --duration 10s --export-markdown $(BUILD)/rush.md
	docs/insert rush $(BUILD)/rush.md docs/rush.md

# The end-to-end test of the page, which looks at what it has before it, takes the picture.
screenshot: programs ## takes the picture of the page in README.md anew, in a real browser
	BUILD=$(BUILD) tests/run e2e -k second_process_is_on_lanes_of_its_own
	cp $(BUILD)/tests/page/readme.png docs/results/page.png

# One fault after the other, each with a result of its own, so that what has been broken is not broken again.
FAULTS ?= $(shell $(BUILD)/loadtest faults --faults help | sed 's/^ *\([a-z0-9-]*\) .*/\1/')
faults: programs ## breaks things under every strategy, for docs/reliability.md; hours; goes on where it was ended (FAULTS="kill pause")
	$(MAKE) --no-print-directory $(FAULTS:%=$(BUILD)/faults/%.json)
	docs/tables faults $(FAULTS:%=$(BUILD)/faults/%.json) >$(BUILD)/faults.md
	docs/insert faults $(BUILD)/faults.md docs/reliability.md
	for fault in $(FAULTS); do $(BUILD)/loadtest report $(BUILD)/faults/$$fault.json --format csv || exit; done | \
	    awk 'NR == 1 || !/^fault,/' >docs/results/faults.csv
	@! grep -lE '"verdict": "(broken|not-caught|nothing-shown)"' $(FAULTS:%=$(BUILD)/faults/%.json)

# One that does not go as expected (exit status 1) has its result as well.
$(BUILD)/faults/%.json: $(BUILD)/loadtest $(BUILD)/order-service
	@mkdir -p $(@D)
	$(BUILD)/loadtest faults --faults $* $(ARGS) --export-json $@.new || [ $$? = 1 ]
	mv $@.new $@

# Every safe strategy sells three hundredths of the orders, and the two quickest the rest: most of the others are as fast as
# one row of PostgreSQL.
SOAK_ORDERS ?= 10000000
SOAK         = $(BUILD)/loadtest soak $(ARGS) --resume $(BUILD)
soak: programs ## sells ten million orders under the safe strategies, for docs/reliability.md; hours; goes on where it was ended (SOAK_ORDERS=…)
	@mkdir -p docs/results
	$(SOAK)/soak.json --orders $$(($(SOAK_ORDERS) * 48 / 100)) --export-json docs/results/soak.json
	$(SOAK)/soak-long.json --strategies batched,redis-stock --orders $$(($(SOAK_ORDERS) * 52 / 100)) --export-json docs/results/soak-long.json
	docs/tables soak docs/results/soak.json docs/results/soak-long.json >$(BUILD)/soak.md
	docs/insert soak $(BUILD)/soak.md docs/reliability.md

bench: ## how far from the limit: ratios against pgbench
	$(MAKE_NOW) deps
	$(BUILD_NOW) programs
	@$(BUILD)/loadtest bench $(ARGS)

# ---- checking -------------------------------------------------------------------------------------

asan: ## every test of the programs with the address and undefined-behaviour sanitizers
	$(MAKE_NOW) test BUILD=$(BUILD)/asan SANITIZE=address,undefined ARGS='$(or $(ARGS),unit contract e2e)'

tsan: ## every test of the programs with the thread sanitizer
	$(MAKE_NOW) test BUILD=$(BUILD)/tsan SANITIZE=thread ARGS='$(or $(ARGS),unit contract e2e)'

# An order of each strategy and its steps, lost and refused COMMITs, keys, pipelining; each service is ended by SIGTERM.
VALGRIND_TESTS := one_client_at_a_time or steps_of_an_order or (commit and select-for-update) or sixteen_pipelined \
                  or a_retry_gives_the_first_order_again or a_replay_in_a_batch or (one_holds_and_the_other_waits and redis-lock)
valgrind: ## end-to-end tests of the service under valgrind: errors and leaks fail; some minutes (ARGS="-k …")
	$(call install_packages,$(DEPS) valgrind libc6-dbg)
	$(BUILD_NOW) programs
	@install -D -t $(BUILD)/valgrind tests/valgrind/order-service tests/valgrind/suppressions
	@BUILD=$(BUILD)/valgrind tests/run e2e $(or $(ARGS),-k '$(VALGRIND_TESTS)')

FUZZ_SECONDS ?= 60
fuzz: ## mutated input for all that reads some, under the sanitizers (FUZZ_SECONDS=3600 for each)
	$(MAKE_NOW) deps
	$(BUILD_NOW) $(FUZZ_BUILD) fuzz-programs
	$(BUILD_NOW) programs
	$(BUILD_NOW) programs BUILD=$(BUILD)/asan SANITIZE=address,undefined
	@BUILD=$(BUILD)/fuzz tests/fuzz/run $(FUZZ_SECONDS)
	@BUILD=$(BUILD)/asan FUZZ_SECONDS=$(FUZZ_SECONDS) tests/run e2e -s -k mutated_streams
	@BUILD=$(BUILD) FUZZ_SECONDS=$(FUZZ_SECONDS) tests/run e2e -s -k mutated_streams  # which can tell whether it grows

TORTURE ?= all
torture: ## fails every call on the way of an order, one after the other, under the sanitizers; hours (TORTURE=redis-lock,etcd)
	$(MAKE_NOW) deps
	$(BUILD_NOW) programs tests BUILD=$(BUILD)/asan SANITIZE=address,undefined
	@BUILD=$(BUILD)/asan TORTURE='$(TORTURE)' tests/run e2e -s -k each_call_fails_in_turn

# Without gcc 12's leak checks, which take what is stored through a pointer for lost: clang-tidy and the leak
# sanitizer look for leaks.
analyze: ## gcc's static analyzer over every program
	$(MAKE_NOW) deps
	$(BUILD_NOW) --keep-going programs BUILD=$(BUILD)/analyze CC=gcc \
	    CFLAGS='$(CFLAGS) -fanalyzer -Werror -Wno-analyzer-malloc-leak -Wno-analyzer-file-leak'

mutants: ## mutation tests: applies each patch of tests/mutants, and fails if its check does not catch it; 30 minutes (ARGS="--sample 4")
	$(MAKE_NOW) deps
	$(BUILD_NOW) all
	+@BUILD=$(BUILD) tests/mutants/run $(ARGS)

SOURCES  := $(foreach l,$(LAYERS) $(LOCKRUN),$(call c_sources,$(l))) $(TEST_SOURCES) \
            $(wildcard tests/contract/*.c tests/fuzz/*.c tests/torture/*.c) $(wildcard exercises/*/*.c)
HEADERS  := $(sort $(shell find $(LAYERS) $(LOCKRUN) -name '*.h')) $(wildcard tests/unit/*.h tests/fuzz/*.h) $(wildcard exercises/judge/*.h)
SCRIPTS  := stack/stack $(wildcard stack/*.sh) $(addprefix stack/container/,install keys with-keys postgres redis zookeeper) tests/run tests/fuzz/run tests/mutants/run tests/valgrind/order-service .ci/run docs/insert docs/workshop/shell

lint: ## clang-tidy, shellcheck, and who may include whom
	$(MAKE_NOW) deps-lint
	$(BUILD_NOW) --keep-going lint-includes lint-shell lint-tidy

lint-includes:
	tests/lint/includes

lint-shell:
	shellcheck $(SCRIPTS)

# A source is looked at again when it, a header of it or the list of checks has changed, as its object says.
lint-tidy: $(patsubst %.c,$(BUILD)/tidy/%.clean,$(SOURCES))

$(BUILD)/tidy/%.clean: $(BUILD)/obj/%.o .clang-tidy
	@mkdir -p $(@D)
	$(call say,TIDY,$*.c)clang-tidy --quiet $*.c -- $(OUR_CFLAGS) >$@.log 2>&1 || { grep -v 'warnings.* generated' $@.log; exit 1; }
	@mv $@.log $@

format: deps-lint ## lay out every source as .clang-format says
	clang-format -i $(SOURCES) $(HEADERS)

format-check: deps-lint ## fail if `make format` would change anything
	clang-format --dry-run -Werror $(SOURCES) $(HEADERS)

# ---- installing, cleaning -------------------------------------------------------------------------

SHARE = $(DESTDIR)$(PREFIX)/share/oversell

install: programs ## into $(DESTDIR)$(PREFIX), /usr/local by default
	install -D -m 755 -t $(DESTDIR)$(PREFIX)/bin $(PROGRAMS)
	install -D -m 755 -t $(SHARE)/stack stack/stack
	install -D -m 644 -t $(SHARE)/stack stack/*.sh stack/shop.sql
	install -D -m 644 -t $(SHARE)/loadtest loadtest/compare/order.lua loadtest/compare/pages.lua loadtest/bench/kazoo_lock.py
	install -D -m 644 -t $(SHARE)/schedules schedules/*.sched
	sed 's,/usr/local/bin/,$(PREFIX)/bin/,' service/order-service.service | \
	    install -D -m 644 /dev/stdin $(DESTDIR)$(PREFIX)/lib/systemd/system/order-service.service

clean: ## remove what was built, and the private servers with their data
	@if [ -d $(BUILD)/stack ]; then stack/stack down --purge --dir $(BUILD)/stack; fi
	rm -rf $(BUILD)

help: ## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/\1\t\2/p' $(firstword $(MAKEFILE_LIST)) | \
	    while IFS="$$(printf '\t')" read -r target text; do printf '%-14s %s\n' "$$target" "$$text"; done
