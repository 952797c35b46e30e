/* `judge`: checks a learner's strategy, prints hints, and prints the solution once the strategy has passed. */
#include "exercises/judge/verdict.h"

#include "loadtest/cli/interrupt.h"
#include "loadtest/testbed/servers.h"
#include "loadtest/testbed/testbed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { JUDGED = 0, NOT_YET = 1, MISUSED = 2, NOT_JUDGED = 3, LOG_MOST = 60000 };

struct judge_settings {
    const char *exercises;
    const char *build;
    const char *servers;
    int64_t limit_ms, hint;
};

#define AT(member) offsetof(struct judge_settings, member)

static const char *const SERVER_CHOICES[] = {"private", "environment", NULL};

static const struct option_row ROWS[] = {
    {"--exercises", "DIR", OPTION_TEXT, AT(exercises), 0, 0, NULL, "the folder of the tasks"},
    {"--build", "DIR", OPTION_TEXT, AT(build), 0, 0, NULL,
     "the folder with the learner's loadtest and order-service; results.json is\nwritten there"},
    {"--limit", "TIME", OPTION_DURATION, AT(limit_ms), 1000, 3600000, NULL, "time limit of each check"},
    {"--servers", "WHICH", OPTION_CHOICE, AT(servers), 0, 0, SERVER_CHOICES,
     "private servers, or those of DATABASE_URL and REDIS_URL in the\nenvironment"},
    {"--hint", "N", OPTION_NUMBER, AT(hint), 0, 99, NULL, "number of hints to show"},
};

static const struct option_rows OPTIONS = OPTION_ROWS("Options", ROWS);

static const struct command_line LINE = {
    .name = "judge",
    .alone = true,
    .operands = "check|hint|solution TASK",
    .min_operands = 2,
    .max_operands = 2,
    .summary =
        "Judges a learner's strategy with explore and compare; see exercises/README.md.\n"
        "Exit status: 0 judged, passed or not; 1 no solution before the strategy has passed; 2 wrong usage;\n"
        "3 nothing could be judged.",
    .groups = {{&OPTIONS, 0}},
};

static void path_in(const char *folder, const char *name, char path[static PATH_MAX])
{
    snprintf(path, PATH_MAX, "%s/%s", folder, name);
}

/* ---- hints and solutions -------------------------------------------------------------------------------------- */

static int print_hints(const struct task *task, int64_t most)
{
    size_t i, count = json_array_size(task->hints);
    json_t *hint;
    json_array_foreach(task->hints, i, hint) {
        if ((int64_t)i < most)
            printf("Hint %zu of %zu: %s\n", i + 1, count, json_string_value(hint));
    }
    if (most < (int64_t)count)
        printf("For the next hint: make hint NAME=%s HINT=%lld\n", task->name, (long long)most + 1);
    return JUDGED;
}

static int print_file(const char *path)
{
    char text[4096];
    size_t length;
    FILE *file = fopen(path, "re");
    if (!file) {
        fprintf(stderr, "judge: cannot read %s; check that the repository is complete\n", path);
        return NOT_JUDGED;
    }
    while ((length = fread(text, 1, sizeof text, file)) > 0)
        (void)fwrite(text, 1, length, stdout);
    fclose(file);
    return JUDGED;
}

static int print_solution(const struct task *task, const struct judge_settings *settings)
{
    char results[PATH_MAX], solution[PATH_MAX];
    path_in(settings->build, "results.json", results);
    path_in(task->folder, "solution.c", solution);
    if (verdict_has_passed(results))
        return print_file(solution);
    printf(
        "%s has not passed yet, and the solution is shown only after that. To judge it: make exercise NAME=%s\n"
        "For a hint: make hint NAME=%s\n",
        task->name, task->name, task->name);
    return NOT_YET;
}

/* ---- building ------------------------------------------------------------------------------------------------- */

/* The compiler's messages, malloc'ed; "" if there are none, NULL when out of memory. */
static char *build_log(const char *build)
{
    char path[PATH_MAX], *text = calloc(1, LOG_MOST + 1);
    path_in(build, "build.log", path);
    FILE *log = text ? fopen(path, "re") : NULL;
    if (log) {
        text[fread(text, 1, LOG_MOST, log)] = '\0';
        fclose(log);
    }
    return text;
}

/* Was the learner's program built? If not, that is the result of the exercise. */
static bool is_built(const struct judge_settings *settings, const char *results)
{
    char program[PATH_MAX];
    path_in(settings->build, "loadtest", program);
    bool built = access(program, X_OK) == 0;
    char *log = build_log(settings->build);
    if (!built) {
        printf(":(  Your file does not compile\n%s", log ? log : "");
        (void)verdict_write_error(results, log && *log ? log : "your file does not compile");
    } else if (log && strstr(log, "warning:")) {
        printf("The compiler warns:\n%s\n", log);
    }
    free(log);
    return built;
}

/* ---- servers -------------------------------------------------------------------------------------------------- */

/* The environment of the child processes; the texts live in the struct. */
struct addresses {
    char database[600], redis[600];
    char missing[300]; /* why Redis is unavailable, or "" */
    const char *variables[4];
};

static bool find_addresses(struct testbed *testbed, const struct judge_settings *settings,
                           struct addresses *ret)
{
    bool private = strcmp(settings->servers, "private") == 0;
    struct lock_config found = {.database_url = getenv("DATABASE_URL"), .redis_url = getenv("REDIS_URL")};
    if (private) {
        found = testbed->addresses;
        (void)server_is_up(testbed, &redis_server, ret->missing, sizeof ret->missing);
    } else if (!found.redis_url || !*found.redis_url)
        snprintf(ret->missing, sizeof ret->missing, "REDIS_URL is not set");
    snprintf(ret->database, sizeof ret->database, "DATABASE_URL=%s", found.database_url);
    snprintf(ret->redis, sizeof ret->redis, "REDIS_URL=%s", found.redis_url ? found.redis_url : "");
    ret->variables[0] = ret->database;
    ret->variables[1] = ret->redis;
    ret->variables[2] = "STRATEGY=mine"; /* the service's own default is not in the learner's table */
    return found.database_url && *found.database_url;
}

/* ---- judging -------------------------------------------------------------------------------------------------- */

static bool is_in_path(const char *program)
{
    char path[PATH_MAX];
    const char *rest = getenv("PATH");
    while (rest && *rest) {
        size_t length = strcspn(rest, ":");
        snprintf(path, sizeof path, "%.*s/%s", (int)length, rest, program);
        if (access(path, X_OK) == 0)
            return true;
        rest += length + (rest[length] == ':');
    }
    return false;
}

/* Why CHECK cannot run, or NULL. */
static const char *why_not(const struct task *task, const struct check *check, const struct addresses *where)
{
    if (task->redis && *where->missing)
        return where->missing;
    if (check->kind == CHECK_COMPARE && !is_in_path("wrk"))
        return "wrk is not installed; install it with make deps";
    return NULL;
}

static void run_checks(const struct task *task, const struct judge_settings *settings,
                       const struct addresses *where, struct result *results)
{
    char program[PATH_MAX];
    path_in(settings->build, "loadtest", program);
    const struct judging judging = {settings->build, program, settings->limit_ms, where->variables};
    const char *stopped = NULL; /* later checks are skipped after the first failure */
    for (size_t i = 0; i < task->check_count; i++) {
        const struct check *check = &task->checks[i];
        const char *reason = interrupted() ? "interrupted" : stopped;
        if (!reason)
            reason = why_not(task, check, where);
        results[i] = (struct result){.status = RESULT_SKIPPED};
        check_name_command(check, program, &results[i]);
        if (reason)
            snprintf(results[i].summary, sizeof results[i].summary, "%s", reason);
        else
            check_run(task, check, &judging, &results[i]);
        if (results[i].status == RESULT_FAILED || results[i].status == RESULT_ERRED)
            stopped = "an earlier check failed; fix that first";
        verdict_print(check, &results[i]);
    }
}

static void print_next(const struct task *task, const struct judge_settings *settings)
{
    char next[sizeof task->name];
    task_find_next(settings->exercises, task->name, next, sizeof next);
    if (*next)
        printf("Next: make exercise NAME=%s\n", next);
    else
        puts("This was the last exercise.");
}

static int judge(const struct task *task, const struct judge_settings *settings)
{
    static struct result results[CHECKS_MAX];
    struct testbed_settings place = {
        .servers = settings->servers, .database = true, .strategies = task->redis ? redis_lock.name : NULL};
    struct addresses where = {0};
    struct testbed testbed;
    char path[PATH_MAX];
    path_in(settings->build, "results.json", path);
    (void)unlink(path); /* of an earlier run */
    printf("%s: %s\n\n", task->name, task->title);
    if (!is_built(settings, path))
        return JUDGED;
    if (!testbed_settings_valid(&place))
        return MISUSED;
    interrupt_watch();
    if (!testbed_open(&place, &testbed))
        return interrupted() ? 128 + interrupted() : NOT_JUDGED;
    bool found = find_addresses(&testbed, settings, &where);
    if (found)
        run_checks(task, settings, &where, results);
    testbed_close(&testbed);
    if (!found || interrupted())
        return interrupted() ? 128 + interrupted() : NOT_JUDGED;
    if (verdict_print_sum(task, results))
        print_next(task, settings);
    else if (settings->hint > 0)
        (void)print_hints(task, settings->hint);
    return verdict_write(path, task, results) ? JUDGED : NOT_JUDGED;
}

int main(int argc, char **argv)
{
    struct judge_settings settings = {
        .exercises = "exercises", .build = "build/exercise", .servers = "private", .limit_ms = 60000};
    struct texts words;
    struct task task;
    switch (options_parse(&LINE, argc, argv, &settings, &words)) {
    case OPTIONS_OK: break;
    case OPTIONS_HELP: return JUDGED;
    case OPTIONS_BAD: return MISUSED;
    }
    if (!task_load(settings.exercises, words.item[1], &task))
        return MISUSED;
    int status = MISUSED;
    if (strcmp(words.item[0], "check") == 0)
        status = judge(&task, &settings);
    else if (strcmp(words.item[0], "hint") == 0)
        status = print_hints(&task, settings.hint > 0 ? settings.hint : 1);
    else if (strcmp(words.item[0], "solution") == 0)
        status = print_solution(&task, &settings);
    else
        fprintf(stderr, "judge: there is no command '%s'; valid: check hint solution\n", words.item[0]);
    task_free(&task);
    return status;
}
