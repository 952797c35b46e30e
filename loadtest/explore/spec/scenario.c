/* Reads scenarios from files and from the short form, and compares results with their expectations. */
#include "loadtest/explore/spec/scenario.h"

#include "loadtest/cli/options.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- reading -------------------------------------------------------------------------------------------------- */

struct reader {
    char *rest; /* of the line */
    int line;
    char *error;
    size_t size;
};

static char *next_word(struct reader *reader)
{
    char *word;
    while ((word = strsep(&reader->rest, " \t\r")) && !*word)
        ;
    return word;
}

__attribute__((format(printf, 2, 3))) static bool wrong(struct reader *reader, const char *format, ...)
{
    char what[300];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    if (reader->line > 0)
        snprintf(reader->error, reader->size, "line %d: %s", reader->line, what);
    else
        snprintf(reader->error, reader->size, "%s", what);
    return false;
}

/* A number, which may be negative where LEAST is. */
static bool read_number(struct reader *reader, const char *what, const char *word, int64_t least,
                        int64_t *ret_number)
{
    bool negative = word && least < 0 && word[0] == '-';
    if (!word || !parse_number(word + negative, ret_number) || *ret_number < least)
        return wrong(reader, "%s '%s' is not a number%s", what, word ? word : "",
                     least > 0 ? " from 1 on" : "");
    if (negative)
        *ret_number = -*ret_number;
    return true;
}

static bool read_strategy(struct reader *reader, const char *word, struct execution_settings *settings)
{
    settings->strategy = word ? strategy_find(word) : NULL;
    return settings->strategy || wrong(reader, "unknown strategy '%s'", word ? word : "");
}

/* A:1 B:1 */
static bool read_order(struct reader *reader, const char *word, struct execution_settings *settings)
{
    if (settings->actors == ACTORS_MAX || word[0] != actor_name((unsigned)settings->actors) || word[1] != ':')
        return wrong(reader, "'%s' is not the next order (A:1 B:1 …, %d at most)", word, ACTORS_MAX);
    return read_number(reader, "quantity", word + 2, 1, &settings->quantities[settings->actors++]);
}

static bool read_settings(struct reader *reader, struct scenario *scenario)
{
    char *word;
    *scenario = (struct scenario){.settings.stock = 1};
    if (!read_strategy(reader, next_word(reader), &scenario->settings))
        return false;
    bool orders = false;
    while ((word = next_word(reader))) {
        bool ok;
        if (strcmp(word, "stock") == 0)
            ok = read_number(reader, "stock", next_word(reader), 0, &scenario->settings.stock);
        else if (strcmp(word, "orders") == 0)
            ok = orders = true;
        else
            ok = orders ? read_order(reader, word, &scenario->settings)
                        : wrong(reader, "'%s' is not valid (stock or orders)", word);
        if (!ok)
            return false;
    }
    return scenario->settings.actors > 0 || wrong(reader, "no orders (as in: orders A:1 B:1)");
}

/* A script may have any number of faults; this enables those that it names. */
static void allow_faults(struct scenario *scenario)
{
    static const unsigned NEEDED[TRANSITION_KIND_COUNT] = {[TRANSITION_EXPIRE] = SHOWN_BY_EXPIRY,
                                                           [TRANSITION_CRASH] = SHOWN_BY_CRASH,
                                                           [TRANSITION_RESTART] = SHOWN_BY_EXPIRY,
                                                           [TRANSITION_CUT] = SHOWN_BY_EXPIRY,
                                                           [TRANSITION_TIMEOUT] = WAITS_END};
    scenario->settings.follows_script = true;
    for (size_t i = 0; i < scenario->script.count; i++)
        scenario->settings.faults |= NEEDED[scenario->script.parts[i].kind];
}

static const struct {
    const char *name;
    unsigned faults;
} FAULTS[] = {{"none", 0}, {"expire", SHOWN_BY_EXPIRY}, {"crash", SHOWN_BY_CRASH}, {"timeout", WAITS_END}};

enum { FAULTS_COUNT = sizeof FAULTS / sizeof FAULTS[0] };

bool faults_parse(const char *name, unsigned *ret_faults)
{
    size_t i = 0;
    while (i < FAULTS_COUNT && strcmp(FAULTS[i].name, name) != 0)
        i++;
    *ret_faults = i < FAULTS_COUNT ? FAULTS[i].faults : 0;
    return i < FAULTS_COUNT;
}

const char *faults_name(unsigned faults)
{
    size_t i = FAULTS_COUNT - 1;
    while (i > 0 && FAULTS[i].faults != faults)
        i--;
    return FAULTS[i].name;
}

/* "all", or "all faults …". */
static bool read_all(struct reader *reader, struct scenario *scenario)
{
    char *word = next_word(reader);
    if (!word || strcmp(word, "all") != 0)
        return wrong(reader, "'schedules' must be followed by 'all'");
    scenario->all = true;
    if (!(word = next_word(reader)))
        return true;
    if (strcmp(word, "faults") != 0)
        return wrong(reader, "'%s' is not valid (faults)", word);
    word = next_word(reader);
    do {
        unsigned faults;
        if (!word || !faults_parse(word, &faults))
            return wrong(reader, "'%s' is no fault (valid: none, expire, crash, timeout)", word ? word : "");
        scenario->settings.faults |= faults;
    } while ((word = next_word(reader)));
    return true;
}

static bool read_outcome(struct reader *reader, const struct scenario *scenario, const char *actor,
                         const char *word, struct expectation *ret_expectation)
{
    unsigned index = (unsigned)(actor[0] - 'A');
    if (scenario->all || index >= scenario->settings.actors)
        return wrong(reader, "'%s' is no order of this schedule", actor);
    for (int outcome = 0; word && outcome < OUTCOME_COUNT; outcome++)
        if (strcmp(outcome_name((enum outcome)outcome), word) == 0) {
            *ret_expectation = (struct expectation){
                .kind = EXPECT_OUTCOME, .number = outcome, .actor = (uint8_t)index};
            return true;
        }
    return wrong(reader, "'%s' is no outcome of an order", word ? word : "");
}

static bool read_expectation(struct reader *reader, const struct scenario *scenario, const char *word,
                             struct expectation *ret_expectation)
{
    bool never = strcmp(word, "never") == 0, sometimes = strcmp(word, "sometimes") == 0;
    if (strlen(word) == 1)
        return read_outcome(reader, scenario, word, next_word(reader), ret_expectation);
    if (never || sometimes)
        word = next_word(reader);
    const struct figure *figure = word ? figure_find(word) : NULL;
    if (!figure || !(scenario->all ? figure->in_totals : figure->in_ending))
        return wrong(reader, "'%s' cannot be expected of %s", word ? word : "",
                     scenario->all ? "all schedules" : "one schedule");
    if ((never || sometimes) && !scenario->all)
        return wrong(reader, "'never' and 'sometimes' can be expected of all schedules only");
    *ret_expectation = (struct expectation){.kind = never       ? EXPECT_NEVER
                                                    : sometimes ? EXPECT_SOMETIMES
                                                                : EXPECT_NUMBER,
                                            .figure = figure->name};
    return never || sometimes ||
           read_number(reader, figure->name, next_word(reader), INT64_MIN, &ret_expectation->number);
}

static bool read_expectations(struct reader *reader, struct scenario *scenario)
{
    char *word;
    while ((word = next_word(reader))) {
        if (scenario->expectation_count == EXPECTATIONS_MAX)
            return wrong(reader, "more than %d expectations", EXPECTATIONS_MAX);
        if (!read_expectation(reader, scenario, word, &scenario->expectations[scenario->expectation_count]))
            return false;
        scenario->expectation_count++;
    }
    return true;
}

/* One line. SETTINGS is what the last `strategy` line said; scenarios are added to SCENARIOS. */
static bool read_line(struct reader *reader, struct scenario *settings, struct scenario *scenarios,
                      size_t most, size_t *count)
{
    char *word = next_word(reader), error[500];
    if (!word)
        return true;
    if (strcmp(word, "strategy") == 0)
        return read_settings(reader, settings);
    if (strcmp(word, "expect") == 0)
        return *count > 0 ? read_expectations(reader, &scenarios[*count - 1])
                          : wrong(reader, "'expect' comes after a schedule");
    bool all = strcmp(word, "schedules") == 0;
    if (!all && strcmp(word, "schedule") != 0)
        return wrong(reader, "'%s' is not valid (strategy, schedule, schedules or expect)", word);
    if (!settings->settings.strategy)
        return wrong(reader, "'%s' comes after a strategy", word);
    if (*count == most)
        return wrong(reader, "more than %zu schedules", most);
    struct scenario *scenario = &scenarios[(*count)++];
    *scenario = *settings;
    scenario->line = reader->line;
    if (all)
        return read_all(reader, scenario);
    if (!script_parse(reader->rest ? reader->rest : "", scenario->settings.actors, &scenario->script, error,
                      sizeof error))
        return wrong(reader, "%s", error);
    allow_faults(scenario);
    return true;
}

size_t scenarios_parse(char *text, struct scenario *ret_scenarios, size_t most, char *ret_error, size_t size)
{
    struct scenario settings = {0};
    struct reader reader = {.error = ret_error, .size = size};
    size_t count = 0;
    while ((reader.rest = strsep(&text, "\n"))) {
        reader.line++;
        reader.rest[strcspn(reader.rest, "#")] = '\0';
        if (!read_line(&reader, &settings, ret_scenarios, most, &count))
            return 0;
    }
    if (count == 0)
        snprintf(ret_error, size, "the file has no schedule");
    return count;
}

/* ---- the short form ------------------------------------------------------------------------------------------- */

static bool read_quantities(struct reader *reader, char *list, struct execution_settings *settings)
{
    char *word;
    while ((word = strsep(&list, ","))) {
        if (settings->actors == ACTORS_MAX)
            return wrong(reader, "more than %d orders", ACTORS_MAX);
        if (!read_number(reader, "quantity", word, 1, &settings->quantities[settings->actors++]))
            return false;
    }
    return true;
}

bool scenario_parse_short(const char *text, struct scenario *ret_scenario, char *ret_error, size_t size)
{
    char copy[SCENARIO_TEXT], *word;
    struct reader reader = {.rest = copy, .error = ret_error, .size = size};
    struct execution_settings *settings = &ret_scenario->settings;
    *ret_scenario = (struct scenario){.settings.stock = 1};
    if (snprintf(copy, sizeof copy, "%s", text) >= (int)sizeof copy)
        return wrong(&reader, "too long");
    if (!read_strategy(&reader, next_word(&reader), settings))
        return false;
    const char *script = reader.rest;
    while (script && (script += strspn(script, " \t"),
                      strncmp(script, "s=", 2) == 0 || strncmp(script, "q=", 2) == 0)) {
        word = next_word(&reader);
        if (word[0] == 's' ? !read_number(&reader, "stock", word + 2, 0, &settings->stock)
                           : !read_quantities(&reader, word + 2, settings))
            return false;
        script = reader.rest;
    }
    if (settings->actors == 0)
        settings->quantities[0] = settings->quantities[1] = 1, settings->actors = 2;
    if (!script_parse(script ? script : "", settings->actors, &ret_scenario->script, ret_error, size))
        return false;
    allow_faults(ret_scenario);
    return true;
}

const char *scenario_short(const struct execution_settings *settings, const struct script *script,
                           char *buffer)
{
    char words[SCRIPT_TEXT];
    size_t used = (size_t)snprintf(buffer, SCENARIO_TEXT, "%s s=%" PRId64 " q=", settings->strategy->name,
                                   settings->stock);
    for (size_t i = 0; i < settings->actors; i++)
        used += (size_t)snprintf(buffer + used, SCENARIO_TEXT - used, "%s%" PRId64, i ? "," : "",
                                 settings->quantities[i]);
    snprintf(buffer + used, SCENARIO_TEXT - used, " %s", script_words(script, words));
    return buffer;
}

/* ---- comparing results with expectations ---------------------------------------------------------------------- */

static bool is_met(const struct expectation *expected, const struct ending *ending,
                   const struct totals *totals, char *ret_error, size_t size)
{
    if (expected->kind == EXPECT_OUTCOME) {
        enum outcome found = ending->outcomes[expected->actor];
        snprintf(ret_error, size, "%c ended as %s, where %s was expected", actor_name(expected->actor),
                 outcome_name(found), outcome_name((enum outcome)expected->number));
        return (int64_t)found == expected->number;
    }
    int64_t found = figure_value(figure_find(expected->figure), ending, totals);
    switch (expected->kind) {
    case EXPECT_NEVER:
        snprintf(ret_error, size, "%s in %" PRId64 " schedules, where never was expected", expected->figure,
                 found);
        return found == 0;
    case EXPECT_SOMETIMES:
        snprintf(ret_error, size, "%s in no schedule, where some were expected", expected->figure);
        return found > 0;
    default:
        snprintf(ret_error, size, "%s %" PRId64 ", where %" PRId64 " was expected", expected->figure, found,
                 expected->number);
        return found == expected->number;
    }
}

bool scenario_met(const struct scenario *scenario, const struct ending *ending, const struct totals *totals,
                  char *ret_error, size_t size)
{
    for (size_t i = 0; i < scenario->expectation_count; i++)
        if (!is_met(&scenario->expectations[i], ending, totals, ret_error, size))
            return false;
    *ret_error = '\0';
    return true;
}
