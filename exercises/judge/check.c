/* Runs one check of a learner's strategy: `loadtest explore` or `compare` in a child process with a time limit, whose JSON result
 * decides. */
#include "exercises/judge/check.h"

#include "loadtest/cli/interrupt.h"
#include "loadtest/cli/options.h"
#include "loadtest/process/child.h"

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The name of the only row of a learner's table. */
#define STRATEGY "mine"

enum { WORDS_MAX = 40, EXPLORE_GRACE_MS = 10000, COMPARE_GRACE_MS = 30000 };

__attribute__((format(printf, 3, 4))) static void conclude(struct result *result, enum result_status status,
                                                           const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(result->summary, sizeof result->summary, format, arguments);
    va_end(arguments);
    result->status = status;
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static int64_t number_of(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

/* ---- the command ---------------------------------------------------------------------------------------------- */

struct words {
    const char *item[WORDS_MAX];
    size_t count;
};

static void add(struct words *words, const char *word)
{
    if (words->count + 1 < WORDS_MAX) /* argv ends with a NULL */
        words->item[words->count++] = word;
}

static void add_check(struct words *words, const char *program, const struct check *check)
{
    size_t i;
    json_t *argument;
    add(words, program);
    add(words, check->kind == CHECK_COMPARE ? "compare" : "explore");
    add(words, check->kind == CHECK_REPLAY ? "--replay" : "--strategies");
    add(words, check->kind == CHECK_REPLAY ? check->replay : STRATEGY);
    json_array_foreach(check->arguments, i, argument) {
        add(words, json_string_value(argument));
    }
    if (check->kind == CHECK_REPLAY)
        return;
    add(words, check->kind == CHECK_EXPLORE ? "--never" : "--phases");
    add(words, check->kind == CHECK_EXPLORE ? check->never : "sell-out");
}

void check_name_command(const struct check *check, const char *program, struct result *result)
{
    struct words words = {0};
    size_t used = 0, size = sizeof result->command;
    add_check(&words, program, check);
    for (size_t i = 0; i < words.count && used < size; i++) {
        const char *quote = strpbrk(words.item[i], " >") ? "'" : "";
        used += (size_t)snprintf(result->command + used, size - used, "%s%s%s%s", i ? " " : "", quote,
                                 words.item[i], quote);
    }
}

/* ---- what the child leaves behind ----------------------------------------------------------------------------- */

/* Appends to the learner's output, up to OUTPUT_MOST bytes. */
static void note_output(const char *text, size_t length, struct result *result)
{
    size_t used = strlen(result->output);
    if (used > OUTPUT_MOST)
        return;
    snprintf(result->output + used, OUTPUT_MOST + 1 - used, "%.*s", (int)length, text);
    if (used + length > OUTPUT_MOST)
        snprintf(result->output + OUTPUT_MOST, sizeof result->output - OUTPUT_MOST,
                 "\n(cut off after %d bytes)", OUTPUT_MOST);
}

/* Lines of loadtest itself give the reason of a failure. The rest is the learner's output, whose last line may lack its end. */
static void read_log(const char *path, struct result *result, char *ret_complaint, size_t size)
{
    static const char SAYS[] = "loadtest: ";
    char line[1000];
    *ret_complaint = '\0';
    FILE *log = fopen(path, "re");
    while (log && fgets(line, sizeof line, log)) {
        const char *said = strstr(line, SAYS);
        if (said && !*ret_complaint)
            snprintf(ret_complaint, size, "%.*s", (int)strcspn(said + sizeof SAYS - 1, "\n"),
                     said + sizeof SAYS - 1);
        note_output(line, said ? (size_t)(said - line) : strlen(line), result);
    }
    if (log)
        fclose(log);
}

/* The only row of the result. */
static json_t *read_row(const char *path, enum check_kind kind)
{
    json_auto_t *document = json_load_file(path, 0, NULL);
    return json_incref(
        json_array_get(json_object_get(document, kind == CHECK_REPLAY ? "replays" : "rows"), 0));
}

/* ---- what the figures say ------------------------------------------------------------------------------------- */

static const struct {
    const char *figure, *key, *words;
} FIGURES[] = {
    {"oversold", "oversold", "oversold"},
    {"drift", "drift", "stock and orders do not balance"},
    {"undersold", "undersold", "an order was refused although enough was left"},
    {"stuck", "stuck_locks", "an order waits forever"},
    {"deadlock", "deadlocks", "a deadlock"},
    {"robbed", "robbed", "an order released another order's lock"},
    {"two-holders", "two_holders", "two orders held the lock at once"},
};

static bool is_in_list(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = list; (at = strstr(at, word)); at += length)
        if ((at == list || at[-1] == ',') && (!at[length] || at[length] == ','))
            return true;
    return false;
}

static void describe_failure(const struct check *check, const json_t *row, struct result *result)
{
    char what[300] = "";
    size_t used = 0;
    int64_t schedules = number_of(row, "schedules");
    for (size_t i = 0; i < sizeof FIGURES / sizeof FIGURES[0] && used < sizeof what; i++) {
        int64_t count = number_of(row, FIGURES[i].key);
        if (is_in_list(check->never, FIGURES[i].figure) && count > 0)
            used += (size_t)snprintf(what + used, sizeof what - used, "%s%s in %" PRId64 " of %" PRId64,
                                     used ? ", " : "", FIGURES[i].words, count, schedules);
    }
    conclude(result, RESULT_FAILED, "%s",
             used ? what : "an order failed, or its answer to the client was wrong");
}

static void describe_outcomes(const json_t *witness, struct result *result)
{
    size_t i, used = strlen(result->explanation), size = sizeof result->explanation;
    json_t *outcome;
    json_array_foreach(json_object_get(json_object_get(witness, "ending"), "outcomes"), i, outcome) {
        if (used < size)
            used += (size_t)snprintf(result->explanation + used, size - used, "%s%c: %s", i ? ", " : " (",
                                     (char)('A' + i), json_string_value(outcome));
    }
    if (i > 0 && used < size)
        snprintf(result->explanation + used, size - used, ")");
}

static void judge_schedules(const struct check *check, const json_t *row, const char *program,
                            struct result *result)
{
    const json_t *witness = json_object_get(row, "witness");
    const char *verdict = text_of(row, "verdict"), *reason = text_of(row, "reason");
    if (strcmp(verdict, "ok") == 0) {
        conclude(result, RESULT_PASSED, "all %" PRId64 " schedules", number_of(row, "schedules"));
    } else if (strcmp(verdict, "broken") == 0) {
        describe_failure(check, row, result);
        if (*text_of(witness, "replay"))
            snprintf(result->replay, sizeof result->replay, "%s explore --replay '%s'", program,
                     text_of(witness, "replay"));
        snprintf(result->explanation, sizeof result->explanation, "%s", text_of(witness, "explanation"));
        describe_outcomes(witness, result);
    } else if (strcmp(verdict, "unknown") == 0 && !*reason) {
        conclude(result, RESULT_PASSED, "%" PRId64 " schedules, those with the fewest interruptions",
                 number_of(row, "schedules"));
    } else {
        conclude(result, RESULT_FAILED, "%s", *reason ? reason : verdict);
    }
}

static void judge_replay(const struct check *check, const json_t *row, struct result *result)
{
    const json_t *ending = json_object_get(row, "ending");
    const char *reason = text_of(row, "error");
    bool wrong = false;
    for (size_t i = 0; i < sizeof FIGURES / sizeof FIGURES[0]; i++) {
        const json_t *value = json_object_get(ending,
                                              FIGURES[i].figure); /* "two_holders" is found by its key */
        value = value ? value : json_object_get(ending, FIGURES[i].key);
        wrong |= is_in_list(check->never, FIGURES[i].figure) &&
                 (json_is_true(value) || json_integer_value(value) != 0);
    }
    if (!wrong && !*reason) {
        conclude(result, RESULT_PASSED, "sold %" PRId64, number_of(ending, "sold"));
        return;
    }
    conclude(result, RESULT_FAILED, "%s",
             *reason ? reason : "it sold more than the stock, or stock and orders do not balance");
    snprintf(result->replay, sizeof result->replay, "%s", result->command);
    snprintf(result->explanation, sizeof result->explanation, "%s", text_of(row, "explanation"));
}

static void judge_load(const json_t *row, struct result *result)
{
    const char *verdict = text_of(row, "verdict");
    const char *why = text_of(row, *text_of(row, "witness") ? "witness" : "finding");
    int64_t oversold = number_of(row, "oversold"), drift = number_of(row, "drift");
    if (strcmp(verdict, "unavailable") == 0)
        conclude(result, RESULT_ERRED, "the load test could not run: %s",
                 *text_of(row, "reason") ? text_of(row, "reason") : "no reason given");
    else if (oversold || drift || strcmp(verdict, "broken") == 0)
        conclude(result, RESULT_FAILED, "sold %" PRId64 " of %" PRId64 ", drift %" PRId64 "%s%s",
                 number_of(row, "sold"), number_of(row, "stock"), drift, *why ? ": " : "", why);
    else
        conclude(result, RESULT_PASSED, "sold %" PRId64 " of %" PRId64, number_of(row, "sold"),
                 number_of(row, "stock"));
}

/* Help for a check that did not reach what it is about, so that its own help would mislead; NULL if the own one fits. */
static const char *help_instead(const struct result *result)
{
    if (strstr(result->summary, "internal-error"))
        return "PostgreSQL refused a statement, and the line above quotes its message. Correct the statement, then judge "
               "again.";
    if (strstr(result->summary, "backend-unavailable"))
        return "A server refused a command or did not answer, and the line above quotes it. Correct the command, then "
               "judge again.";
    if (result->status == RESULT_ERRED)
        return "The check did not finish, for the reason in the line above. Correct that first, then judge again.";
    return NULL;
}

static void judge_row(const struct task *task, const struct check *check, const json_t *row,
                      const char *program, struct result *result)
{
    if (check->kind == CHECK_REPLAY)
        judge_replay(check, row, result);
    else if (strcmp(text_of(row, "guarantee"), task->guarantee) != 0)
        conclude(result, RESULT_ERRED, "the row promises '%s', but the task needs '%s'",
                 text_of(row, "guarantee"), task->guarantee);
    else if (check->kind == CHECK_EXPLORE)
        judge_schedules(check, row, program, result);
    else
        judge_load(row, result);
    result->help = help_instead(result);
}

/* ---- running it ----------------------------------------------------------------------------------------------- */

void check_run(const struct task *task, const struct check *check, const struct judging *judging,
               struct result *result)
{
    char found[PATH_MAX + 16], log[PATH_MAX + 16], complaint[400];
    struct words words = {0};
    struct child child;
    snprintf(found, sizeof found, "%s/check.json", judging->build);
    snprintf(log, sizeof log, "%s/check.log", judging->build);
    (void)unlink(found); /* of an earlier check */
    (void)unlink(log);
    add_check(&words, judging->program, check);
    for (const char *const *word =
             (const char *const[]){"--servers", "environment", "--format", "json", "--output", found, NULL};
         *word; word++)
        add(&words, *word);

    const struct child_plan plan = {
        .argv = words.item, .env = judging->environment, .log = log, .death_signal = SIGTERM};
    if (!child_start(&plan, &child)) {
        conclude(result, RESULT_ERRED, "the system cannot start another process");
        result->help = "Close other programs, then judge again.";
        return;
    }
    bool ended = child_wait(&child, judging->limit_ms, true);
    if (!ended) /* time for the child to stop the services that it has started */
        child_stop(&child, check->kind == CHECK_COMPARE ? COMPARE_GRACE_MS : EXPLORE_GRACE_MS);
    read_log(log, result, complaint, sizeof complaint);
    json_auto_t *row = ended ? read_row(found, check->kind) : NULL;
    if (!ended && interrupted())
        conclude(result, RESULT_SKIPPED, "interrupted");
    else if (!ended) {
        conclude(result, RESULT_FAILED, "it did not end within %s",
                 duration_text(judging->limit_ms, (char[32]){0}));
        result->help =
            "Look for a loop that never ends, and for a wait without a deadline. Every loop needs a condition "
            "that ends it.";
    } else if (row)
        judge_row(task, check, row, judging->program, result);
    else {
        conclude(result, RESULT_ERRED, "%s",
                 *complaint ? complaint : child_status_text(&child, (char[64]){0}));
        result->help = help_instead(result);
    }
}
