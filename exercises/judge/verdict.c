/* Writes the results of the checks as text and as results.json. */
#include "exercises/judge/verdict.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FORM_VERSION = 2 };

static const struct {
    const char *face, *status;
} STATUS[] = {
    [RESULT_PASSED] = {":)", "pass"},
    [RESULT_FAILED] = {":(", "fail"},
    [RESULT_ERRED] = {":(", "error"},
    [RESULT_SKIPPED] = {":|", "error"},
};

/* ---- text ----------------------------------------------------------------------------------------------------- */

/* Prints TEXT in lines of about LINE bytes, aligned under each other. */
static void print_wrapped(const char *what, const char *text)
{
    enum { LINE = 100 };
    printf("      %-9s", what);
    for (size_t length, at = 0; *text; text += length + (text[length] == ' ')) {
        length = strcspn(text, " ");
        if (at > 0 && at + length > LINE)
            at = (size_t)printf("\n%15s", "") - 16;
        at += (size_t)printf("%s%.*s", at > 0 ? " " : "", (int)length, text);
    }
    putchar('\n');
}

static const char *help_of(const struct check *check, const struct result *result)
{
    return result->help ? result->help : check->help;
}

void verdict_print(const struct check *check, const struct result *result)
{
    printf("%s  %s\n      %s%s\n", STATUS[result->status].face, check->name,
           result->status == RESULT_SKIPPED ? "skipped: " : "", result->summary);
    if (result->status == RESULT_FAILED || result->status == RESULT_ERRED) {
        if (*result->explanation)
            print_wrapped("why:", result->explanation);
        print_wrapped("help:", help_of(check, result));
        printf("      %-9s%s\n",
               *result->replay ? "replay:" : "again:", *result->replay ? result->replay : result->command);
    }
    if (*result->output)
        printf("      it printed:\n%s\n", result->output);
    (void)fflush(stdout);
}

bool verdict_print_sum(const struct task *task, const struct result *results)
{
    size_t counts[4] = {0};
    for (size_t i = 0; i < task->check_count; i++)
        counts[results[i].status]++;
    printf("\n%zu passed, %zu failed, %zu skipped. ", counts[RESULT_PASSED],
           counts[RESULT_FAILED] + counts[RESULT_ERRED], counts[RESULT_SKIPPED]);
    bool passed = counts[RESULT_PASSED] == task->check_count;
    if (passed)
        printf("The strategy keeps its promise. Compare it with: make solution NAME=%s\n", task->name);
    else
        printf("For a hint: make hint NAME=%s\n", task->name);
    return passed;
}

/* ---- results.json --------------------------------------------------------------------------------------------- */

/* What a learner prints may not be UTF-8, also because it was cut off: then other bytes than ASCII become '?'. */
static json_t *text_json(const char *text)
{
    json_t *json = json_string(text);
    char *copy = json ? NULL : strdup(text);
    if (!copy)
        return json;
    for (char *at = copy; *at; at++)
        if ((unsigned char)*at > 127)
            *at = '?';
    json = json_string(copy);
    free(copy);
    return json;
}

/* For people: what went wrong, the help, and how to see it again. */
static json_t *message_of(const struct check *check, const struct result *result)
{
    char text[sizeof *result + 2000];
    if (result->status == RESULT_PASSED)
        return json_null();
    if (result->status == RESULT_SKIPPED)
        snprintf(text, sizeof text, "skipped: %s", result->summary);
    else
        snprintf(text, sizeof text, "%s%s%s\n%s%s%s", result->summary, *result->explanation ? "\n" : "",
                 result->explanation, help_of(check, result), *result->replay ? "\nreplay: " : "",
                 result->replay);
    return text_json(text);
}

static bool write_document(const char *path, json_t *document)
{
    bool written = document && json_dump_file(document, path, JSON_INDENT(2) | JSON_ENSURE_ASCII) == 0;
    if (!written)
        fprintf(stderr, "judge: %s cannot be written\n", path);
    json_decref(document);
    return written;
}

bool verdict_write(const char *path, const struct task *task, const struct result *results)
{
    json_t *tests = json_array();
    size_t passed = 0, erred = 0;
    for (size_t i = 0; i < task->check_count; i++) {
        const struct result *result = &results[i];
        const char *status = STATUS[result->status].status;
        passed += strcmp(status, "pass") == 0;
        erred += strcmp(status, "error") == 0;
        json_array_append_new(tests,
                              json_pack("{s:s, s:s, s:o, s:o, s:s}", "name", task->checks[i].name, "status",
                                        status, "message", message_of(&task->checks[i], result), "output",
                                        *result->output ? text_json(result->output) : json_null(),
                                        "test_code", result->command));
    }
    if (erred == task->check_count) {
        return write_document(path,
                              json_pack("{s:i, s:s, s:o, s:o}", "version", FORM_VERSION, "status", "error",
                                        "message", text_json(results[0].summary), "tests", tests));
    }
    const char *status = passed == task->check_count ? "pass" : "fail";
    return write_document(path, json_pack("{s:i, s:s, s:n, s:o}", "version", FORM_VERSION, "status", status,
                                          "message", "tests", tests));
}

bool verdict_write_error(const char *path, const char *message)
{
    return write_document(path, json_pack("{s:i, s:s, s:o, s:[]}", "version", FORM_VERSION, "status", "error",
                                          "message", text_json(message), "tests"));
}

bool verdict_has_passed(const char *path)
{
    json_auto_t *document = json_load_file(path, 0, NULL);
    const char *status = json_string_value(json_object_get(document, "status"));
    return status && strcmp(status, "pass") == 0;
}
