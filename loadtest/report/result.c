/* A stored result: one JSON document with its settings, its machine and its rows. */
#include "loadtest/report/result.h"

#include "loadtest/cli/commands.h"
#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/cli/selection.h"
#include "loadtest/report/reproduce.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#define FILE_MAX_BYTES (64u << 20)
#define RESULT_VERSION 1

/* What KEY says in a file of "KEY<separator> VALUE" lines such as /proc/cpuinfo; "" if nothing. */
static void read_fact(const char *path, const char *key, const char *separators, char *ret_value, size_t size)
{
    char line[512];
    ret_value[0] = 0;
    FILE *file = fopen(path, "re");
    if (!file)
        return;
    while (!ret_value[0] && fgets(line, sizeof line, file)) {
        size_t length = strlen(key);
        if (strncmp(line, key, length) != 0 || !strchr(separators, line[length]))
            continue;
        char *value = line + length + strspn(line + length, separators);
        value[strcspn(value, "\"\n")] = 0;
        snprintf(ret_value, size, "%s", value);
    }
    fclose(file);
}

static json_t *machine_json(void)
{
    struct utsname system;
    char cpu[128], distribution[128];
    read_fact("/proc/cpuinfo", "model name", " \t:", cpu, sizeof cpu);
    read_fact("/etc/os-release", "PRETTY_NAME", "=\"", distribution, sizeof distribution);
    if (uname(&system) != 0)
        memset(&system, 0, sizeof system);
    long long memory = (long long)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
    return json_pack("{s:I, s:s, s:I, s:s, s:s, s:s}", "cpus", (json_int_t)sysconf(_SC_NPROCESSORS_ONLN),
                     "cpu", cpu, "memory_mib", (json_int_t)(memory >> 20), "architecture", system.machine,
                     "kernel", system.release, "system", distribution);
}

json_t *result_new(const char *kind, json_t *settings)
{
    char now[32];
    time_t seconds = time(NULL);
    struct tm utc;
    if (!gmtime_r(&seconds, &utc) || strftime(now, sizeof now, "%Y-%m-%dT%H:%M:%SZ", &utc) == 0)
        now[0] = 0;
    const char *command = reproduce_command();
    return json_pack("{s:i, s:s, s:s, s:s*, s:o, s:o, s:o*}", "version", RESULT_VERSION, "kind", kind, "at",
                     now, "command", *command ? command : NULL, "machine", machine_json(), "settings",
                     settings, "interrupted", interrupt_came() ? json_true() : NULL);
}

json_t *result_load(const char *path)
{
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
    char *text = malloc(FILE_MAX_BYTES + 1);
    json_t *document = NULL;
    json_error_t error;
    if (!file || !text) {
        complain("cannot open %s: %s", path, file ? "out of memory" : strerror(errno));
    } else {
        size_t length = fread(text, 1, FILE_MAX_BYTES + 1, file);
        if (ferror(file))
            complain("cannot read %s: %s", path, strerror(errno));
        else if (length > FILE_MAX_BYTES)
            complain("%s is larger than any result of loadtest. Use a file that --export-json wrote", path);
        else if (length == 0)
            complain("%s is empty. Use a file that --export-json wrote", path);
        else if (!(document = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error)))
            complain("%s is not JSON: %s (line %d)", path, error.text, error.line);
    }
    free(text);
    if (file && file != stdin)
        fclose(file);

    const json_t *version = json_object_get(document, "version");
    if (document && (!json_is_integer(version) || json_integer_value(version) != RESULT_VERSION)) {
        if (json_is_integer(version))
            complain("%s was written by another version of loadtest (format %" JSON_INTEGER_FORMAT
                     "; this one reads %d): run the command again",
                     path, json_integer_value(version), RESULT_VERSION);
        else
            complain(
                "%s is not a result of loadtest: it has no number 'version'. Use a file that --export-json wrote",
                path);
        json_decref(document);
        document = NULL;
    }
    return document;
}

const char *result_kind_name(const json_t *document)
{
    const char *kind = json_string_value(json_object_get(document, "kind"));
    if (kind)
        return kind;
    if (json_object_get(document, "ratios"))
        return "bench";
    const json_t *row = json_array_get(json_object_get(document, "rows"), 0);
    return json_object_get(row, "instances") ? "compare" : "";
}

int64_t result_number(const json_t *row, const char *key)
{
    return (int64_t)json_integer_value(json_object_get(row, key));
}

double result_figure(const json_t *row, const char *key)
{
    const json_t *value = json_object_get(row, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

const char *result_text(const json_t *row, const char *key)
{
    const char *value = json_string_value(json_object_get(row, key));
    return value ? value : "";
}

const json_t *result_find(const json_t *rows, const char *strategy)
{
    size_t i;
    json_t *row;
    json_array_foreach(rows, i, row) {
        if (strcmp(result_text(row, "strategy"), strategy) == 0)
            return row;
    }
    return NULL;
}

enum verdict result_verdict(const json_t *row)
{
    enum verdict verdict;
    return verdict_parse(result_text(row, "verdict"), &verdict) ? verdict : VERDICT_BROKEN;
}

size_t result_verdicts(const json_t *rows, size_t ret_counts[VERDICT_COUNT])
{
    size_t i, failed = 0;
    json_t *row;
    memset(ret_counts, 0, VERDICT_COUNT * sizeof ret_counts[0]);
    json_array_foreach(rows, i, row) {
        enum verdict verdict = result_verdict(row);
        ret_counts[verdict]++;
        failed += verdict_fails(verdict);
    }
    return failed;
}

int result_status(const json_t *rows, const char *list)
{
    size_t i, unavailable = 0;
    json_t *row;
    bool missed = false, failed = false;
    json_array_foreach(rows, i, row) {
        enum verdict verdict = result_verdict(row);
        failed |= verdict_fails(verdict) && verdict != VERDICT_NOT_EXPLORED;
        missed |= verdict == VERDICT_NOT_EXPLORED;
        if (verdict == VERDICT_UNAVAILABLE) {
            unavailable++;
            missed |= selection_names(list, result_text(row, "strategy"));
        } else {
            missed |= *result_text(row, "reason") != 0;
        }
    }
    if (failed)
        return ENDED_BROKEN;
    return missed || unavailable == json_array_size(rows) ? ENDED_ENVIRONMENT : ENDED_AS_EXPECTED;
}
