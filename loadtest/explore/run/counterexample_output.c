/* Counterexamples of the rows that were found: printed, or written as scenario files. */
#include "loadtest/explore/run/explore_result.h"

#include "loadtest/cli/complain.h"
#include "loadtest/explore/spec/scenario.h"
#include "loadtest/report/output.h"
#include "loadtest/report/result.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void print_one(const json_t *counterexample)
{
    if (json_is_object(counterexample))
        printf("\n%s\n%s%s\n", json_string_value(json_object_get(counterexample, "replay")),
               json_string_value(json_object_get(counterexample, "told")),
               json_string_value(json_object_get(counterexample, "explanation")));
}

void print_counterexamples(const json_t *rows)
{
    size_t i, j;
    const json_t *row, *counterexample;
    json_array_foreach(rows, i, row) {
        print_one(json_object_get(row, "witness"));
        json_array_foreach(json_object_get(row, "further_witnesses"), j, counterexample) {
            print_one(counterexample);
        }
    }
}

/* ---- as files ---------------------------------------------------------------------------------------------------- */

static void write_expectation(FILE *out, const json_t *ending)
{
    size_t i;
    json_t *outcome;
    fprintf(out,
            "expect   sold %" PRId64 "  left %" PRId64 "  oversold %" PRId64 "  drift %" PRId64 "  stuck %d",
            result_number(ending, "sold"), result_number(ending, "left"), result_number(ending, "oversold"),
            result_number(ending, "drift"), json_is_true(json_object_get(ending, "stuck")));
    json_array_foreach(json_object_get(ending, "outcomes"), i, outcome) {
        fprintf(out, "  %c %s", actor_name((unsigned)i), json_string_value(outcome));
    }
    fputc('\n', out);
}

static bool write_scenario(FILE *out, const json_t *counterexample)
{
    struct scenario scenario;
    char error[600], words[SCRIPT_TEXT];
    const char *replay = json_string_value(json_object_get(counterexample, "replay"));
    if (!replay || !scenario_parse_short(replay, &scenario, error, sizeof error))
        return false;
    const struct execution_settings *settings = &scenario.settings;
    fprintf(out, "# %s\nstrategy %s   stock %" PRId64 "   orders",
            json_string_value(json_object_get(counterexample, "explanation")), settings->strategy->name,
            settings->stock);
    for (size_t i = 0; i < settings->actors; i++)
        fprintf(out, " %c:%" PRId64, actor_name((unsigned)i), settings->quantities[i]);
    fprintf(out, "\nschedule %s\n", script_words(&scenario.script, words));
    write_expectation(out, json_object_get(counterexample, "ending"));
    return true;
}

static bool save(const json_t *row, const char *dir)
{
    const json_t *counterexample = json_object_get(row, "witness");
    char path[PATH_MAX], *text = NULL;
    size_t length;
    if (!json_is_object(counterexample))
        return true;
    if (snprintf(path, sizeof path, "%s/%s.sched", dir,
                 json_string_value(json_object_get(row, "strategy"))) >= (int)sizeof path) {
        complain("--save: the path of the folder is too long");
        return false;
    }
    FILE *out = open_memstream(&text, &length);
    bool written = out && write_scenario(out, counterexample);
    written = out && fclose(out) == 0 && written;
    if (!written)
        complain("out of memory");
    written = written && output_file(path, text, length);
    free(text);
    return written;
}

bool save_counterexamples(const json_t *rows, const char *dir)
{
    size_t i;
    json_t *row;
    bool saved = true;
    if (mkdir(dir, 0777) != 0 && errno != EEXIST) {
        complain("cannot create %s: %s", dir, strerror(errno));
        return false;
    }
    json_array_foreach(rows, i, row) {
        saved &= save(row, dir);
    }
    return saved;
}
