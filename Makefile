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

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SUFFIXES:
.PHONY: all programs tests deps deps-test deps-axe deps-peers deps-frameworks deps-orms deps-lint demo demo-all run site exercise exercise-tools hint solution explore-docs gate-speed readme tables pictures test check-all faults soak bench bench-growth growth-table drawings peers peers-table \
        lint lint-includes lint-words lint-shell lint-tidy \
        format format-check asan tsan valgrind fuzz torture mutants analyze coverage install clean help FORCE

include make/packages.mk make/build.mk make/exercises.mk make/docs.mk make/check.mk

# ---- running, testing ----------------------------------------------------------------------------------

# On as many cores as there are, unless the caller has said how many jobs.
BUILD_NOW = +@$(MAKE) --no-print-directory $(if $(findstring -j,$(MAKEFLAGS)),,-j$(shell nproc))
MAKE_NOW  = +@$(MAKE) --no-print-directory

# The load test looks beside its build folder, which may lie elsewhere.
export OVERSELL_STACK     ?= $(CURDIR)/stack/stack
export OVERSELL_ORDER_LUA ?= $(CURDIR)/loadtest/load/order.lua

demo: ## show how ten strategies protect stock: installs packages, builds, starts private servers (ARGS="--help")
	$(MAKE_NOW) deps
	$(BUILD_NOW) programs || make/build-failed $@ $(BUILD)
	@$(BUILD)/loadtest demo $(ARGS)

demo-all: ## show all strategies in the same way
	$(MAKE) --no-print-directory demo ARGS='--strategies all $(ARGS)'

run: ## run the service with a private database until Ctrl-C (ARGS="--listen 127.0.0.1:8080")
	$(MAKE_NOW) deps
	$(BUILD_NOW) programs || make/build-failed $@ $(BUILD)
	@stack/stack run all -- $(BUILD)/order-service $(ARGS)

test: ## run the tests except the long ones: about twelve minutes on two idle cores
check-all: ## run every test (ARGS=--long: only the long ones)
# The end-to-end tests alone need no unit tests.
test check-all:
	$(MAKE_NOW) deps-test
	$(BUILD_NOW) $(if $(findstring +e2e+,+$(filter unit stack contract e2e lab,$(ARGS))+),programs $(TORTURE_SHIM),all) || make/build-failed $@ $(BUILD)
	@BUILD=$(BUILD) tests/run $(if $(filter test,$@),--short) $(ARGS)

site: ## make the static site in build/site: recorded schedules, which open from file:// (two to five minutes)
	$(MAKE_NOW) deps-test
	$(BUILD_NOW) programs || make/build-failed $@ $(BUILD)
	@rm -rf $(BUILD)/site
	@BUILD=$(BUILD) stack/stack run all -- python3 tools/site/record.py --lessons $(BUILD)/generated/lessons $(BUILD)/site/recorded
	@BUILD=$(BUILD) python3 tools/site/build.py $(BUILD)/site

bench: ## measure how close the service is to its database's limit
	$(MAKE_NOW) deps-test
	$(BUILD_NOW) programs || make/build-failed $@ $(BUILD)
	@BUILD=$(BUILD) bench/bench $(ARGS)

# ---- installing, cleaning -------------------------------------------------------------------------

SHARE = $(DESTDIR)$(PREFIX)/share/oversell

install: programs ## install into $(DESTDIR)$(PREFIX) (default: /usr/local)
	install -D -m 755 -t $(DESTDIR)$(PREFIX)/bin $(PROGRAMS)
	install -D -m 755 -t $(SHARE)/stack stack/stack
	install -D -m 644 -t $(SHARE)/stack stack/*.sh stack/shop.sql
	install -D -m 644 -t $(SHARE)/loadtest loadtest/load/order.lua
	install -D -m 644 -t $(SHARE)/schedules schedules/*.sched
	sed 's,/usr/local/bin/,$(PREFIX)/bin/,' service/order-service.service | \
	    install -D -m 644 /dev/stdin $(DESTDIR)$(PREFIX)/lib/systemd/system/order-service.service

clean: ## remove what was built, and the private servers with their data
	@if [ -d $(BUILD)/stack ]; then stack/stack down --purge --dir $(BUILD)/stack; fi
	rm -rf $(BUILD)

help: ## print this list
	@sed -n 's/^\([a-z_.-]*\):[^#]*## \(.*\)/\1\t\2/p' Makefile make/*.mk | \
	    while IFS="$$(printf '\t')" read -r target text; do printf '%-14s %s\n' "$$target" "$$text"; done
