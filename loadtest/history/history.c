/* Compares results of the same kind, figure by figure. A difference counts if it is larger than the spread of the runs. */
#include "loadtest/history/history.h"

#include "loadtest/cli/complain.h"
#include "loadtest/report/result.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A figure that is compared. */
struct figure {
    const char *path, *name;
    int better; /* 1: more is better; -1: less; 0: it is a word, or neither */
    /* Paths of its spread over the runs; NULL: none is stored. A count that does not vary is its own spread, so every change counts. */
    const char *least, *most;
};

#define FIGURES_MAX 4

/* What is compared of a kind. ROWS is the member with the rows, and NAMES are the paths of what tells a row from others. */
static const struct comparable {
    const char *kind, *rows, *names[2];
    struct figure figures[FIGURES_MAX];
} COMPARABLE[] = {
    {"compare",
     "rows",
     {"strategy"},
     {{"verdict", "verdict", 0, NULL, NULL},
      {"orders_per_s", "orders/s", 1, "orders_per_s_spread.least", "orders_per_s_spread.most"},
      {"latency_ms.p99", "p99 ms", -1, NULL, NULL}}},
    {"rush",
     "rows",
     {"strategy"},
     {{"verdict", "verdict", 0, NULL, NULL},
      {"maximum_per_s", "closed loop /s", 1, NULL, NULL},
      {"latency_ms.p50", "p50 ms", -1, NULL, NULL},
      {"latency_ms.p99", "p99 ms", -1, NULL, NULL}}},
    {"bench", "ratios", {"name"}, {{"value", "ratio", 1, "min", "max"}}},
    {"soak",
     "rows",
     {"strategy"},
     {{"verdict", "verdict", 0, NULL, NULL},
      {"orders_per_s", "orders/s", 1, NULL, NULL},
      {"memory_end_kib", "memory KiB", -1, NULL, NULL}}},
    {"explore",
     "rows",
     {"strategy"},
     {{"verdict", "verdict", 0, NULL, NULL},
      {"schedules", "schedules", 0, "schedules", "schedules"},
      {"oversold", "oversold", -1, "oversold", "oversold"}}},
    {"faults",
     "rows",
     {"fault", "strategy"},
     {{"verdict", "verdict", 0, NULL, NULL},
      {"lost", "lost", -1, "lost", "lost"},
      {"longest_outage_ms", "outage ms", -1, NULL, NULL}}},
    {"growth",
     "rows",
     {"axis", "at"},
     {{"atomic-statement.orders_per_s", "atomic-statement, orders/s", 1, NULL, NULL},
      {"select-for-update.orders_per_s", "select-for-update, orders/s", 1, NULL, NULL}}},
    {"check",
     "rows",
     {"run"},
     {{"verdict", "verdict", 0, NULL, NULL},
      {"oversold", "oversold", -1, "oversold", "oversold"},
      {"orders_per_s", "orders/s", 1, NULL, NULL}}},
};

static const struct comparable *find_comparable(const char *kind)
{
    for (size_t i = 0; i < sizeof COMPARABLE / sizeof COMPARABLE[0]; i++)
        if (strcmp(COMPARABLE[i].kind, kind) == 0)
            return &COMPARABLE[i];
    return NULL;
}

/* ---- rows ---------------------------------------------------------------------------------------------- */

static json_t *value_at(const json_t *row, const char *path)
{
    const struct column column = {.path = path};
    return path ? (json_t *)cell_value(&column, row) : NULL;
}

/* "kill, redis-lock". BUFFER of CELL_MAX, returned. */
static const char *name_of(const struct comparable *comparable, const json_t *row, char *buffer)
{
    char part[CELL_MAX];
    size_t used = 0;
    buffer[0] = 0;
    for (size_t i = 0; i < 2 && comparable->names[i] && used < CELL_MAX; i++) {
        const struct column column = {.path = comparable->names[i]};
        used += (size_t)snprintf(buffer + used, CELL_MAX - used, "%s%s", i ? ", " : "",
                                 cell_plain(&column, row, part));
    }
    return buffer;
}

static const json_t *find_row(const struct comparable *comparable, const json_t *result, const char *name)
{
    size_t i;
    json_t *row;
    char buffer[CELL_MAX];
    json_array_foreach(json_object_get(result, comparable->rows), i, row) {
        if (strcmp(name_of(comparable, row, buffer), name) == 0)
            return row;
    }
    return NULL;
}

/* ---- a difference -------------------------------------------------------------------------------------- */

struct span {
    double least, most;
    bool known;
};

static struct span span_of(const struct figure *figure, const json_t *row)
{
    const json_t *least = value_at(row, figure->least), *most = value_at(row, figure->most);
    struct span span = {json_number_value(least), json_number_value(most),
                        json_is_number(least) && json_is_number(most)};
    return span;
}

/* Are all runs of one result outside of all runs of the other? */
static const char *assess(const struct figure *figure, int better, const json_t *before, const json_t *after)
{
    const json_t *first = value_at(before, figure->path), *last = value_at(after, figure->path);
    if (!first || !last)
        return "only in one result";
    if (!json_is_number(first) || !json_is_number(last))
        return json_equal((json_t *)first, (json_t *)last) ? "the same" : "changed";
    struct span a = span_of(figure, before), b = span_of(figure, after);
    double change = json_number_value(last) - json_number_value(first);
    if (change == 0)
        return "the same";
    if (!a.known || !b.known)
        return "spread unknown";
    if (a.least <= b.most && b.least <= a.most)
        return "within the spread";
    return better == 0 ? "changed" : change * better > 0 ? "better" : "worse";
}

static bool is_difference(const char *assessment)
{
    return strcmp(assessment, "better") == 0 || strcmp(assessment, "worse") == 0 ||
           strcmp(assessment, "changed") == 0;
}

/* Every later result is assessed against the first one. The last one counts most; if it does not differ, the latest that does is
 * named. BUFFER of CELL_MAX, returned. */
static const char *assess_all(const struct figure *figure, int better, const json_t *const *rows,
                              size_t count, char *buffer)
{
    const char *last = assess(figure, better, rows[0], rows[count - 1]);
    snprintf(buffer, CELL_MAX, "%s", last);
    for (size_t i = count - 2; i > 0 && !is_difference(last); i--) {
        const char *earlier = assess(figure, better, rows[0], rows[i]);
        if (is_difference(earlier)) {
            snprintf(buffer, CELL_MAX, "%s in result %zu", earlier, i + 1);
            break;
        }
    }
    return buffer;
}

static json_t *change_percent(const json_t *first, const json_t *last)
{
    double from = json_number_value(first), to = json_number_value(last);
    if (!json_is_number(first) || !json_is_number(last) || from == 0)
        return json_null();
    return json_real(round((to / from - 1) * 1000) / 10);
}

static json_t *compare_figure(const struct comparable *comparable, const struct figure *figure,
                              const char *name, json_t *const *results, size_t count)
{
    json_t *values = json_array();
    const json_t *rows[HISTORY_MAX];
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        rows[i] = find_row(comparable, results[i], name);
        json_t *value = value_at(rows[i], figure->path);
        any |= value != NULL;
        json_array_append_new(values, value ? json_incref(value) : json_null());
    }
    if (!any) {
        json_decref(values);
        return NULL;
    }
    char assessment[CELL_MAX];
    const json_t *known = rows[0] ? rows[0] : rows[count - 1];
    bool lower = strcmp(result_text(known, "better"), "lower") == 0; /* of a ratio of bench */
    json_t *first = json_array_get(values, 0), *last = json_array_get(values, count - 1);
    return json_pack("{s:s, s:s, s:O, s:O, s:o, s:s, s:o}", "row", name, "figure", figure->name, "first",
                     first, "last", last, "change_percent", change_percent(first, last), "assessment",
                     assess_all(figure, lower ? -1 : figure->better, rows, count, assessment), "values",
                     values);
}

/* Adds a row for each figure of each row of any result, in the order of the first result that has it. */
static bool add_rows(const struct comparable *comparable, json_t *const *results, size_t count, json_t *into)
{
    json_auto_t *seen = json_object();
    char name[CELL_MAX];
    for (size_t r = 0; r < count; r++) {
        size_t i;
        json_t *row;
        json_array_foreach(json_object_get(results[r], comparable->rows), i, row) {
            name_of(comparable, row, name);
            if (json_object_get(seen, name))
                continue;
            if (json_object_set_new(seen, name, json_true()) != 0)
                return false;
            for (size_t f = 0; f < FIGURES_MAX && comparable->figures[f].path; f++) {
                json_t *compared = compare_figure(comparable, &comparable->figures[f], name, results, count);
                if (compared && json_array_append_new(into, compared) != 0)
                    return false;
            }
        }
    }
    return true;
}

bool history_says(const json_t *row, const char *assessment)
{
    return strncmp(result_text(row, "assessment"), assessment, strlen(assessment)) == 0;
}

bool history_differs(const json_t *row)
{
    return history_says(row, "better") || history_says(row, "worse") || history_says(row, "changed");
}

/* The rows whose figures differ come first; otherwise the order stays. A new array. */
static json_t *differing_first(const json_t *rows)
{
    json_t *ordered = json_array();
    for (int differing = 1; differing >= 0; differing--) {
        size_t i;
        json_t *row;
        json_array_foreach(rows, i, row) {
            if (history_differs(row) == (differing == 1))
                json_array_append(ordered, row);
        }
    }
    return ordered;
}

/* ---- the document -------------------------------------------------------------------------------------- */

/* The names of the settings that differ between the first result and another one; those of a run's own sort, such as how busy the
 * machine was, are left out. */
static json_t *differing_settings(json_t *const *results, size_t count)
{
    static const char *const NOT_SETTINGS[] = {"load_average", "servers", "seed"};
    json_t *names = json_array();
    const char *key;
    json_t *value;
    json_object_foreach(json_object_get(results[0], "settings"), key, value) {
        bool differs = false, skipped = false;
        for (size_t i = 0; i < sizeof NOT_SETTINGS / sizeof NOT_SETTINGS[0]; i++)
            skipped |= strcmp(key, NOT_SETTINGS[i]) == 0;
        for (size_t i = 1; i < count; i++)
            differs |= !json_equal(value, json_object_get(json_object_get(results[i], "settings"), key));
        if (differs && !skipped)
            json_array_append_new(names, json_string(key));
    }
    return names;
}

static bool same_machine(json_t *const *results, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (!json_equal(json_object_get(json_object_get(results[0], "machine"), "cpu"),
                        json_object_get(json_object_get(results[i], "machine"), "cpu")) ||
            !json_equal(json_object_get(json_object_get(results[0], "machine"), "cpus"),
                        json_object_get(json_object_get(results[i], "machine"), "cpus")))
            return false;
    return true;
}

json_t *history_new(json_t *const *results, const char *const *names, size_t count)
{
    const char *kind = result_kind_name(results[0]);
    const struct comparable *comparable = find_comparable(kind);
    if (!comparable) {
        complain("%s is a result of '%s', and such results cannot be compared: print them one by one",
                 names[0], kind);
        return NULL;
    }
    json_auto_t *files = json_array(), *rows = json_array();
    for (size_t i = 0; i < count; i++) {
        if (strcmp(result_kind_name(results[i]), kind) != 0) {
            complain("%s is a result of '%s', and %s is one of '%s': compare results of the same command",
                     names[0], kind, names[i], result_kind_name(results[i]));
            return NULL;
        }
        json_array_append_new(
            files, json_pack("{s:s, s:O?}", "name", names[i], "at", json_object_get(results[i], "at")));
    }
    json_t *document = result_new("history", json_pack("{s:s}", "of", kind));
    if (document && add_rows(comparable, results, count, rows) &&
        json_object_set_new(document, "rows", differing_first(rows)) == 0 &&
        json_object_set(document, "files", files) == 0 &&
        json_object_set_new(document, "settings_that_differ", differing_settings(results, count)) == 0 &&
        json_object_set_new(document, "same_machine", json_boolean(same_machine(results, count))) == 0)
        return document;
    complain("out of memory");
    json_decref(document);
    return NULL;
}
