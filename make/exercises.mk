# Exercises: a learner's own strategy, built into separate programs and judged.

JUDGE          := exercises/judge/judge

# A learner's file is a strategy table with one row. It is linked in the place of service/engine/strategies.c, into
# separate programs.
EXERCISE        = $(BUILD)/exercise-$(NAME)
FILE           ?= exercises/$(NAME)/strategy.c
EXERCISE_LINKED = $(EXERCISE)/strategy.o $(LIBRARIES) $(BUILD)/obj/link-flags

$(EXERCISE)/which-file: FORCE
	$(call write_if_changed,$(FILE))

$(EXERCISE)/strategy.o: $(FILE) $(EXERCISE)/which-file $(BUILD)/obj/flags
	$(call say,CC,$<)$(call compile,)

$(EXERCISE)/loadtest: $(BUILD)/obj/loadtest/cli/main.o $(EXERCISE_LINKED)
	$(call link,)

$(EXERCISE)/order-service: $(BUILD)/obj/service/main.o $(EXERCISE_LINKED)
	$(call link,)

-include $(EXERCISE)/strategy.d

# A file that does not compile is judged as well.
exercise-tools: $(LIBRARIES) $(BUILD)/obj/service/main.o $(BUILD)/obj/loadtest/cli/main.o
	@:

exercise: ## judge a strategy of your own (NAME=1-guard; HINT=1 with hints, LIMIT=60s for each check; exercises/README.md)
	$(BUILD_NOW) exercise-tools
	@$(JUDGE) hint '$(NAME)' >/dev/null
	@mkdir -p $(EXERCISE); rm -f $(EXERCISE)/loadtest
	+@$(MAKE) --no-print-directory V= -j2 $(EXERCISE)/loadtest $(EXERCISE)/order-service \
	    >$(EXERCISE)/build.log 2>&1 || rm -f $(EXERCISE)/loadtest
	@$(JUDGE) check '$(NAME)' --build $(EXERCISE) --hint '$(or $(HINT),0)' --limit '$(or $(LIMIT),60s)' \
	    --servers $(or $(SERVERS),private)

hint: ## print a hint for an exercise (NAME=1-guard; HINT=2 for the second)
	@$(JUDGE) hint '$(NAME)' --hint '$(or $(HINT),1)'

solution: ## print the solution of an exercise that has passed (NAME=1-guard)
	@$(JUDGE) solution '$(NAME)' --build $(EXERCISE)
