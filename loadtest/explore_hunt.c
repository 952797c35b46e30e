/* A hunt: schedule after schedule, and what is made of the plainest that went wrong. */
#include "loadtest/explore_hunt.h"

#include "loadtest/explore_scenario.h"
#include "loadtest/explore_story.h"
#include "loadtest/interrupt.h"

#include <stdio.h>
#include <string.h>

enum { TRIES_AGAIN = 3 }; /* at a schedule that does not begin as it did before */

bool hunt_open(struct hunt *hunt, struct explore_shop *shop, const char *url,
               const struct play_settings *settings)
{
    *hunt = (struct hunt){.search.bound = NO_BOUND};
    if (play_open(&hunt->play, shop, url, settings))
        return true;
    snprintf(hunt->error, sizeof hunt->error, "%s", hunt->play.error);
    return false;
}

void hunt_close(struct hunt *hunt)
{
    play_close(&hunt->play);
}

bool hunt_is_complete(const struct hunt *hunt)
{
    return hunt->search.done && !*hunt->error;
}

static bool is_enough(const struct hunt *hunt, const struct hunt_limits *limits, int64_t began_us)
{
    return interrupted() || (limits->schedules && hunt->tally.schedules >= (uint64_t)limits->schedules) ||
           (limits->time_ms && monotonic_us() - began_us >= limits->time_ms * 1000);
}

bool hunt_run(struct hunt *hunt, const struct hunt_limits *limits, hunt_covered *covered, void *context)
{
    const struct world world = {&hunt->play, play_start, play_enabled, play_make, play_end, play_remaining};
    int64_t began_us = monotonic_us();
    unsigned tries = 0;
    while (!is_enough(hunt, limits, began_us))
        switch (search_run(&hunt->search, &world)) {
        case SEARCH_RAN:
            tally_add(&hunt->tally, &hunt->play);
            covered(context, search_coverage(&hunt->search));
            tries = 0;
            break;
        case SEARCH_DONE: return true;
        case SEARCH_DIFFERS:
            hunt->differed++;
            if (!play_end(&hunt->play) || ++tries == TRIES_AGAIN) {
                snprintf(hunt->error, sizeof hunt->error, "not reproducible: %s", hunt->search.error);
                return false;
            }
            break;
        case SEARCH_FAILED:
            snprintf(hunt->error, sizeof hunt->error, "%s",
                     *hunt->play.error ? hunt->play.error : hunt->search.error);
            return false;
        }
    return true;
}

/* ---- the witness ---------------------------------------------------------------------------------------------- */

/* Makes its moves once more, to see what script they are. */
static bool repeat_moves(struct hunt *hunt)
{
    bool made = play_start(&hunt->play);
    for (size_t i = 0; made && i < hunt->tally.witness_length; i++)
        made = play_make(&hunt->play, hunt->tally.witness[i]);
    return play_end(&hunt->play) && made;
}

/* Does the script lead to the same moves, and these to something bad again? */
static bool is_reproduced(struct hunt *hunt, const struct script *script, struct replay *ret_replay)
{
    const struct tally *tally = &hunt->tally;
    return replay_run(&hunt->play, script, ret_replay) && hunt->play.move_count == tally->witness_length &&
           memcmp(hunt->play.moves, tally->witness, tally->witness_length * sizeof tally->witness[0]) == 0 &&
           ending_is_bad(&hunt->play.ending);
}

json_t *hunt_witness(struct hunt *hunt)
{
    struct script script;
    struct replay replay;
    struct story story;
    char words[SCENARIO_TEXT];
    int reproduced = 0;
    if (hunt->tally.witness_length == 0 || !repeat_moves(hunt))
        return json_null();
    script_of_play(&hunt->play, &script);
    for (int i = 0; i < WITNESS_RUNS; i++)
        reproduced += is_reproduced(hunt, &script, &replay);
    story_tell(&hunt->play, &replay, &story);
    return json_pack("{s:s, s:i, s:o, s:o, s:s, s:i}", "replay",
                     scenario_short(&hunt->play.settings, &script, words), "switches",
                     (int)hunt->tally.witness_switches, "steps", story_steps(&hunt->play, &replay), "ending",
                     story_ending(&hunt->play), "explanation", story.explanation, "reproduced", reproduced);
}
