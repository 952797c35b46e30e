/* The explorer's notation: schedules, stories in files and on one line, and lists of figures. What is written is read back
 * as it was. The first byte says which. */
#include "tests/fuzz/fuzz.h"

#include "loadtest/explore/spec/scenario.h"

static char error[600];

static void read_script(const char *text, size_t actors)
{
    static struct script script, again;
    char words[SCRIPT_TEXT];
    if (!script_parse(text, actors, &script, error, sizeof error)) {
        MUST(*error);
        return;
    }
    for (size_t i = 0; i < script.count; i++)
        MUST(script.parts[i].actor < actors);
    MUST(script_parse(script_words(&script, words), actors, &again, error, sizeof error));
    MUST(script.count == again.count &&
         memcmp(script.parts, again.parts, script.count * sizeof *script.parts) == 0);
}

static void read_short(const char *text)
{
    static struct scenario scenario, again;
    char written[SCENARIO_TEXT];
    if (!scenario_parse_short(text, &scenario, error, sizeof error)) {
        MUST(*error);
        return;
    }
    MUST(scenario.settings.actors >= 1 && scenario.settings.actors <= ACTORS_MAX &&
         scenario.settings.stock >= 0);
    MUST(scenario_parse_short(scenario_short(&scenario.settings, &scenario.script, written), &again, error,
                              sizeof error));
    MUST(again.settings.strategy == scenario.settings.strategy &&
         again.settings.stock == scenario.settings.stock);
    MUST(again.script.count == scenario.script.count);
}

static void read_file(char *text)
{
    static struct scenario scenarios[SCENARIOS_MAX];
    size_t count = scenarios_parse(text, scenarios, SCENARIOS_MAX, error, sizeof error);
    MUST(count <= SCENARIOS_MAX && (count > 0 || *error));
    for (size_t i = 0; i < count; i++) {
        struct ending ending = {0};
        struct totals totals = {0};
        (void)scenario_met(&scenarios[i], &ending, scenarios[i].all ? &totals : NULL, error, sizeof error);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    unsigned figures;
    uint8_t kind = fuzz_byte(&input);
    char *text = strndup(input.left ? (const char *)input.at : "", input.left);
    MUST(text);
    *error = '\0';
    switch (kind % 4) {
    case 0: read_script(text, 1 + kind / 4 % ACTORS_MAX); break;
    case 1: read_short(text); break;
    case 2: read_file(text); break;
    default: MUST(figures_parse(text, &figures, error, sizeof error) || *error);
    }
    free(text);
    return 0;
}
