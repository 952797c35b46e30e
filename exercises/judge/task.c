/* Reads and checks exercises/NAME/task.json. */
#include "exercises/judge/task.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool wrong(const struct task *task, const char *what)
{
    fprintf(stderr, "judge: %s/task.json: %s\n", task->folder, what);
    return false;
}

static bool read_check(const struct task *task, const json_t *json, struct check *ret_check)
{
    json_error_t error;
    json_t *explore = NULL, *compare = NULL;
    *ret_check = (struct check){0};
    if (json_unpack_ex((json_t *)json, &error, JSON_STRICT, "{s:s, s?o, s?s, s?s, s?o, s:s}", "name",
                       &ret_check->name, "explore", &explore, "replay", &ret_check->replay, "never",
                       &ret_check->never, "compare", &compare, "help", &ret_check->help) != 0)
        return wrong(task, error.text);
    if (!!explore + !!ret_check->replay + !!compare != 1 || !compare != !!ret_check->never)
        return wrong(task, "a check has 'explore' and 'never', or 'replay' and 'never', or 'compare'");
    ret_check->kind = explore ? CHECK_EXPLORE : compare ? CHECK_COMPARE : CHECK_REPLAY;
    ret_check->arguments = explore ? explore : compare;
    return true;
}

static bool read_task(struct task *task)
{
    json_error_t error;
    json_t *checks = NULL, *hints = NULL;
    int redis = false;
    if (json_unpack_ex(task->json, &error, JSON_STRICT, "{s:s, s:s, s:b, s:o, s:o}", "title", &task->title,
                       "guarantee", &task->guarantee, "redis", &redis, "checks", &checks, "hints",
                       &hints) != 0)
        return wrong(task, error.text);
    task->redis = redis;
    task->hints = hints;
    task->check_count = json_array_size(checks);
    if (task->check_count == 0 || task->check_count > CHECKS_MAX || json_array_size(hints) == 0)
        return wrong(task, "it must have 1 to 12 checks and at least one hint");
    for (size_t i = 0; i < task->check_count; i++)
        if (!read_check(task, json_array_get(checks, i), &task->checks[i]))
            return false;
    return true;
}

static int is_task(const struct dirent *entry)
{
    return entry->d_name[0] >= '0' && entry->d_name[0] <= '9';
}

static void complain_of_name(const char *exercises, const char *name)
{
    struct dirent **entries = NULL;
    int count = scandir(exercises, &entries, is_task, alphasort);
    if (*name)
        fprintf(stderr, "judge: there is no exercise '%s'; valid: NAME=", name);
    else
        fputs("judge: NAME is missing; valid: NAME=", stderr);
    for (int i = 0; i < count; i++) {
        fprintf(stderr, "%s%s", i ? " " : "", entries[i]->d_name);
        free(entries[i]);
    }
    fputs(" (exercises/README.md)\n", stderr);
    free(entries);
}

void task_find_next(const char *exercises, const char *name, char *ret_next, size_t size)
{
    struct dirent **entries = NULL;
    int count = scandir(exercises, &entries, is_task, alphasort);
    *ret_next = '\0';
    for (int i = 0; i < count; i++) {
        if (!*ret_next && strcmp(entries[i]->d_name, name) > 0)
            snprintf(ret_next, size, "%s", entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
}

bool task_load(const char *exercises, const char *name, struct task *ret_task)
{
    char path[PATH_MAX + 16];
    json_error_t error;
    *ret_task = (struct task){0};
    bool fits = snprintf(ret_task->name, sizeof ret_task->name, "%s", name) < (int)sizeof ret_task->name &&
                snprintf(ret_task->folder, sizeof ret_task->folder, "%s/%s", exercises, name) <
                    (int)sizeof ret_task->folder;
    snprintf(path, sizeof path, "%s/task.json", ret_task->folder);
    if (!fits || !*name || strchr(name, '/') || access(path, R_OK) != 0) {
        complain_of_name(exercises, name);
        return false;
    }
    ret_task->json = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    if (!ret_task->json)
        return wrong(ret_task, error.text);
    if (read_task(ret_task))
        return true;
    task_free(ret_task);
    return false;
}

void task_free(struct task *task)
{
    json_decref(task->json);
    task->json = NULL;
}
