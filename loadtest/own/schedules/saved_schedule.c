/* Schedules of requests as files. */
#include "loadtest/own/schedules/saved_schedule.h"

#include "loadtest/cli/complain.h"
#include "loadtest/own/gate/statement_gate.h"
#include "loadtest/own/schedules/request_runner.h"
#include "loadtest/report/output.h"
#include "loadtest/report/result.h"
#include "loadtest/search/transition.h"
#include "loadtest/testbed/testbed.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char KIND[] = "saved-schedule";

bool saved_schedule_write(const char *dir, const char *description, const json_t *found,
                          const struct saved_schedule *settings, char *ret_path, size_t size)
{
    int length = snprintf(ret_path, size, "%s/%s.json", dir, result_text(found, "verdict"));
    if (length < 0 || (size_t)length >= size) {
        complain("--save: the path of the folder is too long");
        return false;
    }
    if (mkdir(dir, 0777) != 0 && errno != EEXIST) {
        complain("--save: cannot create %s: %s", dir, strerror(errno));
        return false;
    }
    json_auto_t *env = json_array();
    bool ok = env != NULL;
    for (size_t i = 0; i < settings->env.count && ok; i++)
        ok = json_array_append_new(env, json_string(settings->env.item[i])) == 0;
    char command[2 * PATH_MAX + 64];
    snprintf(command, sizeof command, "loadtest explore %s --replay %s", description, ret_path);
    json_auto_t *document =
        ok ? json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:b, s:O, s:s*, s:s, s:O}", "kind", KIND,
                       "command", command, "schedule", result_text(found, "schedule"), "verdict",
                       result_text(found, "verdict"), "stock", (json_int_t)settings->stock, "requests",
                       (json_int_t)settings->requests, "instances", (json_int_t)settings->instances,
                       "occupied", (json_int_t)settings->occupied, "frees", settings->frees, "env", env,
                       "expire_key", settings->expire_key, "cause", result_text(found, "cause"), "steps",
                       json_object_get(found, "steps"))
           : NULL;
    char *text = document ? json_dumps(document, JSON_INDENT(2)) : NULL;
    if (!text)
        complain("out of memory");
    ok = text && output_file(ret_path, text, strlen(text));
    free(text);
    return ok;
}

/* In the ranges of the command line's options. */
static bool is_valid(const struct saved_schedule *saved)
{
    return saved->stock >= 1 && saved->stock <= 1000 && saved->requests >= 2 &&
           saved->requests <= ACTORS_MAX && saved->instances >= 1 && saved->instances <= INSTANCES_MAX &&
           saved->occupied >= 0 && saved->occupied <= OCCUPIERS_MAX;
}

bool saved_schedule_read(const char *path, struct saved_schedule *ret_saved)
{
    json_error_t error;
    json_t *document = json_load_file(path, 0, &error), *env = NULL, *word, *step;
    const char *kind = "";
    json_int_t stock = 0, requests = 0, instances = 0, occupied = 0;
    size_t i;
    if (!document) {
        complain("--replay: %s: line %d: %s", path, error.line, error.text);
        return false;
    }
    *ret_saved = (struct saved_schedule){.document = document};
    bool ok = json_unpack(document, "{s:s, s:s, s:I, s:I, s:I, s?I, s:o, s?s}", "kind", &kind, "schedule",
                          &ret_saved->schedule, "stock", &stock, "requests", &requests, "instances",
                          &instances, "occupied", &occupied, "env", &env, "expire_key",
                          &ret_saved->expire_key) == 0 &&
              strcmp(kind, KIND) == 0 && json_is_array(env) && json_array_size(env) <= TEXTS_MAX;
    if (ok) {
        json_array_foreach(env, i, word) {
            ret_saved->env.item[i] = json_string_value(word);
            ok = ok && ret_saved->env.item[i];
        }
        json_array_foreach(json_object_get(document, "steps"), i, step) {
            ok = ok && strlen(result_text(step, "text")) < MESSAGE_TEXT;
        }
        ret_saved->env.count = json_array_size(env);
        ret_saved->steps = json_object_get(document, "steps");
        ret_saved->stock = stock;
        ret_saved->requests = requests;
        ret_saved->instances = instances;
        ret_saved->occupied = occupied;
        ret_saved->frees = json_is_true(json_object_get(document, "frees"));
    }
    if (ok && is_valid(ret_saved))
        return true;
    complain(
        "%s is not a schedule from --save: it must have schedule, stock, requests, instances and env. Save it again",
        path);
    json_decref(document);
    return false;
}

void saved_schedule_free(struct saved_schedule *saved)
{
    json_decref(saved->document);
    *saved = (struct saved_schedule){0};
}
