# What each program is made of, the flags, and the rules that make it.

# ---- what is built from what ----------------------------------------------------------------------

comma := ,

# A layer uses those before it. tests/lint/includes knows the folders within them.
LAYERS       := base db lock service loadtest
LOCKRUN      := tools/lockrun
LOCKBENCH    := tools/lockbench
# What is preloaded into servers is no part of the layer in whose folder it lies.
c_sources     = $(sort $(shell find $(1) -name '*.c' -not -path '*/preload/*'))
asm_sources   = $(sort $(shell find $(1) -name '*.S'))
objects       = $(patsubst %.c,$(BUILD)/obj/%.o,$(call c_sources,$(1))) \
                $(patsubst %,$(BUILD)/obj/%.o,$(call asm_sources,$(1)))
library       = $(BUILD)/liboversell-$(1).a

MAINS        := $(BUILD)/obj/service/main.o $(BUILD)/obj/loadtest/cli/main.o
LIBRARIES    := $(foreach l,$(LAYERS),$(call library,$(l)))
ENGINE_LIBRARIES := $(foreach l,base db lock service,$(call library,$(l)))
TEST_SOURCES := $(sort $(shell find tests/unit -name 'test_*.c'))
TESTS        := $(patsubst tests/unit/%.c,$(BUILD)/tests/%,$(TEST_SOURCES))
# What plays the contenders for locks in the contract tests.
LOCKPROBE    := $(if $(wildcard tests/contract/lockprobe.c),$(BUILD)/lockprobe $(BUILD)/gatealone)
# Makes calls of the C library fail in the service that the torture test starts.
TORTURE_SHIM := $(BUILD)/torture-shim.so
ALL_OBJECTS  := $(foreach l,$(LAYERS) $(LOCKRUN) $(LOCKBENCH),$(call objects,$(l))) \
                $(patsubst %.c,$(BUILD)/obj/%.o,$(TEST_SOURCES) $(wildcard tests/contract/*.c tests/fuzz/*.c tests/torture/*.c))

# A program is built once its main file exists.
PROGRAMS     := $(if $(wildcard service/main.c),$(BUILD)/order-service) \
                $(if $(wildcard tools/lockrun/main.c),$(BUILD)/lockrun) \
                $(if $(wildcard loadtest/cli/main.c),$(BUILD)/loadtest $(BUILD)/clock-shim.so $(BUILD)/disk-shim.so)

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
OUR_CFLAGS  = -std=gnu17 -D_GNU_SOURCE -I. -I$(BUILD)/generated -pthread -fPIE -fexceptions $(OPTIMIZE) $(WARNINGS) $(PKG_CFLAGS) \
              $(if $(HIREDIS_SSL),-DHAVE_HIREDIS_SSL) $(if $(MARIADB),-DHAVE_MARIADB) $(CFLAGS)
OUR_LDFLAGS = -pie -pthread -Wl,-z,relro,-z,now,-z,noexecstack -Wl,--as-needed $(if $(SANITIZE),-fsanitize=$(SANITIZE)) $(LDFLAGS)

# ---- rules ----------------------------------------------------------------------------------------

all: programs $(TESTS) $(LOCKPROBE) $(TORTURE_SHIM) ## build the service, the load test and the unit tests (default)

programs: $(PROGRAMS) $(BUILD)/lockbench

tests: $(TESTS) $(LOCKPROBE) $(TORTURE_SHIM)

# One short line for each step; V=1 shows the whole commands.
say = $(if $(V),,@printf '  %-5s %s\n' '$(1)' '$(2)' && )

# On a full disk gcc leaves a list of headers that is cut off, and no later make could read it. So the list gets its name when
# it is complete. $(1): more flags.
compile = $(CC) $(OUR_CFLAGS) $(1) -MMD -MP -MF $(@:.o=.d.new) -c -o $@ $< && mv $(@:.o=.d.new) $(@:.o=.d)

# Written only when they change, so that other flags or a removed source rebuild what they must.
write_if_changed = @mkdir -p $(@D); printf '%s\n' '$(subst ','\'',$(1))' | cmp -s - $@ || printf '%s\n' '$(subst ','\'',$(1))' >$@

$(BUILD)/obj/flags: FORCE
	$(call write_if_changed,$(CC) $(OUR_CFLAGS))

$(BUILD)/obj/link-flags: FORCE
	$(call write_if_changed,$(CC) $(OUR_LDFLAGS) $(PKG_LIBS) $(OTHER_LIBS))

$(BUILD)/obj/%.o: %.c $(BUILD)/obj/flags
	@mkdir -p $(@D)
	$(call say,CC,$<)$(call compile,)

$(BUILD)/obj/%.S.o: %.S $(BUILD)/obj/flags
	@mkdir -p $(@D)
	$(call say,AS,$<)$(call compile,$(if $(filter -fcf-protection%,$(OPTIMIZE)),-include cet.h))

# Assembly embeds whole files with .incbin, which the compiler's dependency output does not list.
define embedded_files
$(BUILD)/obj/$(1).o: $(shell sed -n 's/.*\.incbin[[:space:]]*"\([^"]*\)".*/\1/p' $(1))
endef
$(foreach s,$(foreach l,$(LAYERS),$(call asm_sources,$(l))),$(eval $(call embedded_files,$(s))))

# The page: every file below service/page that a browser loads is embedded in the service, in the order of this list, and
# a page for each document of the workshop.
LESSON_SOURCES = $(wildcard docs/workshop/*.md)
LESSON_PAGES = $(sort $(patsubst %,$(BUILD)/generated/lessons/%.html,\
               index $(subst README,guide,$(basename $(notdir $(LESSON_SOURCES))))))
PAGE_FILES = $(sort $(shell find service/page -mindepth 2 -type f)) $(LESSON_PAGES)
page_name  = $(patsubst $(BUILD)/generated/%,%,$(patsubst service/page/%,%,$(1)))
page_gz    = $(BUILD)/generated/gz/$(call page_name,$(1)).gz
page_list  = \#define PAGE_FILES(X)$(foreach f,$(PAGE_FILES),\
  $(if ,)X($(subst /,_,$(subst .,_,$(subst -,_,$(call page_name,$(f))))), "$(call page_name,$(f))", "$(f)", "$(call page_gz,$(f))"))

# Browsers that accept gzip get it, at about a third of the size.
define compressed
$(call page_gz,$(1)): $(1)
	@mkdir -p $$(@D) && gzip -9nc $$< >$$@
endef
$(foreach f,$(PAGE_FILES),$(eval $(call compressed,$(f))))

$(BUILD)/generated/page_files.h: FORCE
	$(call write_if_changed,$(page_list))

# One call makes all of them, since each names its neighbours.
$(LESSON_PAGES) &: $(LESSON_SOURCES) make/lesson-pages service/page/lesson.html
	$(call say,PAGES,$(@D))make/lesson-pages $(@D)

$(BUILD)/obj/service/page/page.o $(BUILD)/obj/service/page/page.S.o: $(BUILD)/generated/page_files.h
$(BUILD)/obj/service/page/page.S.o: $(PAGE_FILES) $(foreach f,$(PAGE_FILES),$(call page_gz,$(f)))

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

# For `make bench`; it is not installed.
$(BUILD)/lockbench: $(call objects,$(LOCKBENCH)) $(ENGINE_LIBRARIES) $(BUILD)/obj/link-flags
	$(call link,)

$(BUILD)/lockprobe: $(BUILD)/obj/tests/contract/lockprobe.o $(ENGINE_LIBRARIES) $(BUILD)/obj/link-flags
	$(call link,)

$(BUILD)/gatealone: $(BUILD)/obj/tests/contract/gatealone.o $(LIBRARIES) $(BUILD)/obj/link-flags
	$(call link,)

$(BUILD)/loadtest: $(BUILD)/obj/loadtest/cli/main.o $(LIBRARIES) $(BUILD)/obj/link-flags
	$(call link,)

# Preloaded into servers of others, so without sanitizers.
$(BUILD)/%-shim.so: loadtest/preload/%.c $(wildcard loadtest/preload/*.h) $(BUILD)/obj/flags
	$(call say,LD,$@)$(CC) -std=gnu17 -D_GNU_SOURCE -I. -fPIC -shared -O2 -g $(WARNINGS) $(CFLAGS) -o $@ $<

# Preloaded before a sanitizer's library, so without one as well.
$(TORTURE_SHIM): tests/torture/preload.c $(BUILD)/obj/flags
	$(call say,LD,$@)$(CC) -std=gnu17 -D_GNU_SOURCE -fPIC -shared -pthread -O2 -g -fno-builtin -fno-omit-frame-pointer $(WARNINGS) $(CFLAGS) -o $@ $<

# Tests have parameters that they do not use: cmocka's state, and those of fakes.
$(BUILD)/obj/tests/unit/%.o $(BUILD)/obj/tests/fuzz/%.o \
$(BUILD)/tidy/tests/unit/%.clean $(BUILD)/tidy/tests/fuzz/%.clean: private WARNINGS += -Wno-unused-parameter

# A test's own object comes first, and the first definition of a symbol counts: so a test puts fakes in the
# place of what a library defines, even where another symbol brings that member in.
$(TESTS): $(BUILD)/tests/%: $(BUILD)/obj/tests/unit/%.o $(LIBRARIES) $(BUILD)/obj/link-flags
	@mkdir -p $(@D)
	$(call link,-Wl$(comma)-z$(comma)muldefs -lcmocka)

# Fuzz targets: built by clang, in a separate folder (`make fuzz` calls itself with these settings), since all that they
# call is watched. As with the tests, a target's own definitions take the place of the libraries'.
FUZZ_SOURCES  := $(wildcard tests/fuzz/*.c)
FUZZ_NAMES    := $(patsubst tests/fuzz/%.c,%,$(FUZZ_SOURCES))
FUZZ_BUILD     = BUILD=$(BUILD)/fuzz CC=clang SANITIZE=fuzzer-no-link,address,undefined
FUZZ_EXPLORER := $(patsubst %,$(BUILD)/obj/loadtest/%.o,search/schedule_notation explore/spec/figures explore/spec/scenario cli/options cli/plain_text own/gate/message_text own/gate/redis_messages own/gate/redis_protocol \
                   own/gate/postgres_messages own/gate/postgres_protocol sql/sql_signs)

$(FUZZ_NAMES:%=$(BUILD)/run/%): $(BUILD)/run/%: $(BUILD)/obj/tests/fuzz/%.o $(FUZZ_EXPLORER) $(ENGINE_LIBRARIES) \
                                $(BUILD)/obj/link-flags
	@mkdir -p $(@D)
	$(call link,-fsanitize=fuzzer -Wl$(comma)-z$(comma)muldefs -lcmocka)

.PHONY: fuzz-programs
fuzz-programs: $(FUZZ_NAMES:%=$(BUILD)/run/%)

-include $(ALL_OBJECTS:.o=.d)
