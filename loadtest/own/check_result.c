/* How a result of `loadtest check` is printed: its columns, its title, its notes, and JUnit XML. */
#include "loadtest/own/check.h"

#include "loadtest/cli/complain.h"
#include "loadtest/report/output.h"
#include "loadtest/report/result.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off */
static const struct column COLUMNS[] = {
    {"run", "run", COLUMN_NUMBER, 0, SHOW_ALL, 0, "the number of the sale"},
    {"verdict", "verdict", COLUMN_TEXT, 0, SHOW_ALL, 0, "clean, oversold, drift, invariant-broken or answers-lost"},
    {"stock", "stock", COLUMN_NUMBER, 0, SHOW_ALL, 3, "units before the sale"},
    {"sold", "sold", COLUMN_NUMBER, 0, SHOW_ALL, 0, "units sold, by the database"},
    {"left", "left", COLUMN_NUMBER, 0, SHOW_ALL, 0, "units left, by the database"},
    {"oversold", "over-\nsold", COLUMN_NUMBER, 0, SHOW_ALL, 0, "units sold beyond the stock"},
    {"drift", "drift", COLUMN_NUMBER, 0, SHOW_ALL, 0, "sold − (stock − left)"},
    {"lost", "lost", COLUMN_NUMBER, 0, SHOW_ALL, 0, "units of answers 200 to 299 whose order is not in the database"},
    {"unacknowledged", "unacknowledged", COLUMN_NUMBER, 0, SHOW_CSV, 0, "units of orders in the database that no answer acknowledged"},
    {"created", "created", COLUMN_NUMBER, 0, SHOW_ALL, 4, "answers with a status from 200 to 299"},
    {"sold_out", "sold\nout", COLUMN_NUMBER, 0, SHOW_ALL, 4, "answers with a status of sold_out"},
    {"other", "other", COLUMN_NUMBER, 0, SHOW_ALL, 0, "answers with another status"},
    {"unanswered", "no\nanswer", COLUMN_NUMBER, 0, SHOW_ALL, 0, "requests without an answer"},
    {"broken", "broken\ninvariants", COLUMN_NUMBER, 0, SHOW_CSV, 0, "statements of the invariant that are not true"},
    {"orders_per_s", "orders\n/s", COLUMN_NUMBER, 0, SHOW_ALL, 5, "answers with a status from 200 to 299, per second"},
    {"latency_ms.p50", "p50\nms", COLUMN_NUMBER, 1, SHOW_ALL, 6, "half of the answers took at most this long"},
    {"latency_ms.p99", "p99\nms", COLUMN_NUMBER, 1, SHOW_ALL, 6, "99 of 100 answers took at most this long"},
};
/* clang-format on */

static void print_title(const json_t *document, char *ret_title, size_t size)
{
    const json_t *settings = json_object_get(document, "settings");
    int64_t instances = result_number(settings, "instances");
    snprintf(ret_title, size,
             "%s: %" PRId64 " requests for a stock of %" PRId64 ", over %" PRId64 " connections to %" PRId64
             " instance%s",
             result_text(settings, "description"), result_number(settings, "requests"),
             result_number(settings, "stock"), result_number(settings, "connections"), instances,
             instances == 1 ? "" : "s");
}

/* ---- notes -------------------------------------------------------------------------------------------------------- */

/* What is wrong with the row, as a sentence; "" if nothing is. */
static void explain(const json_t *row, char *ret_text, size_t size)
{
    const char *verdict = result_text(row, "verdict");
    int64_t sold = result_number(row, "sold"), stock = result_number(row, "stock"),
            left = result_number(row, "left");
    *ret_text = '\0';
    if (strcmp(verdict, "oversold") == 0)
        snprintf(ret_text, size,
                 "%" PRId64 " units were sold, but there were only %" PRId64
                 ": two requests have read the same stock",
                 sold, stock);
    else if (strcmp(verdict, "drift") == 0)
        snprintf(ret_text, size,
                 "%" PRId64 " units were sold and %" PRId64 " are left, of %" PRId64
                 ": an update of the stock was lost, or an order was stored without one",
                 sold, left, stock);
    else if (strcmp(verdict, "invariant-broken") == 0)
        snprintf(ret_text, size, "this is not true after the sale: %.300s", result_text(row, "broken_sql"));
    else if (result_number(row, "lost") > 0)
        snprintf(ret_text, size,
                 "the service acknowledged %" PRId64
                 " units more than the database has: these orders were lost",
                 result_number(row, "lost"));
    else if (result_number(row, "unacknowledged") > 0)
        snprintf(ret_text, size,
                 "the database has %" PRId64
                 " units more than the service acknowledged: it rejected buyers who have an order",
                 result_number(row, "unacknowledged"));
}

static bool add_row_notes(const json_t *row, struct notes *notes)
{
    char text[400];
    const json_t *odd = json_object_get(row, "odd_answer");
    int64_t run = result_number(row, "run"), others = result_number(row, "other"),
            missing = result_number(row, "unanswered");
    explain(row, text, sizeof text);
    if (*text && !notes_add(notes, NOTE_WITNESS, "run %" PRId64 ": %s.", run, text))
        return false;
    if (others > 0 && result_number(odd, "status") > 0 &&
        !notes_add(notes, NOTE_WARNING,
                   "run %" PRId64 ": %" PRId64 " answers are neither 2xx nor sold_out; the first is %" PRId64
                   ": %s",
                   run, others, result_number(odd, "status"), result_text(odd, "text")))
        return false;
    return missing == 0 ||
           notes_add(notes, NOTE_WARNING, "run %" PRId64 ": %" PRId64 " requests got no answer%s%s", run,
                     missing, result_number(odd, "status") == 0 ? "; the first: " : "",
                     result_number(odd, "status") == 0 ? result_text(odd, "text") : "");
}

static bool add_notes(const json_t *document, struct notes *notes)
{
    size_t i, bad = 0;
    json_t *row;
    const json_t *rows = json_object_get(document, "rows");
    json_array_foreach(rows, i, row) {
        bad += strcmp(result_text(row, "verdict"), check_verdict_name(CHECK_CLEAN)) != 0;
        if (!add_row_notes(row, notes))
            return false;
    }
    if (bad > 0)
        return notes_add(notes, NOTE_CLOSING, "%zu of %zu runs are not clean.", bad, json_array_size(rows));
    return notes_add(notes, NOTE_CLOSING,
                     "Clean: nothing was oversold or lost. Load shows a race only if it happens.");
}

const struct result_kind check_result = {
    .name = "check",
    .rows = "rows",
    COLUMN_LIST(COLUMNS),
    .title = print_title,
    .notes = add_notes,
};

/* ---- JUnit XML ------------------------------------------------------------------------------------------------------ */

static void print_escaped(FILE *out, const char *text)
{
    for (; *text; text++)
        switch (*text) {
        case '&': fputs("&amp;", out); break;
        case '<': fputs("&lt;", out); break;
        case '>': fputs("&gt;", out); break;
        case '"': fputs("&quot;", out); break;
        default: fputc((unsigned char)*text < ' ' ? ' ' : *text, out);
        }
}

static void print_cases(FILE *out, const json_t *rows, const char *name)
{
    size_t i;
    json_t *row;
    json_array_foreach(rows, i, row) {
        char text[400];
        explain(row, text, sizeof text);
        fputs("  <testcase classname=\"loadtest check\" name=\"", out);
        print_escaped(out, name);
        fprintf(out, ", run %" PRId64 "\"", result_number(row, "run"));
        if (!*text) {
            fputs("/>\n", out);
            continue;
        }
        fprintf(out, ">\n    <failure type=\"%s\" message=\"", result_text(row, "verdict"));
        print_escaped(out, text);
        fputs("\"/>\n  </testcase>\n", out);
    }
}

bool check_write_junit(const json_t *document, const char *path)
{
    const json_t *rows = json_object_get(document, "rows");
    const char *name = result_text(json_object_get(document, "settings"), "description");
    char *text = NULL;
    size_t i, size = 0, bad = 0;
    json_t *row;
    json_array_foreach(rows, i, row) {
        bad += strcmp(result_text(row, "verdict"), check_verdict_name(CHECK_CLEAN)) != 0;
    }
    FILE *out = open_memstream(&text, &size);
    if (out) {
        fprintf(out,
                "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                "<testsuite name=\"loadtest check\" tests=\"%zu\" failures=\"%zu\" errors=\"0\">\n",
                json_array_size(rows), bad);
        print_cases(out, rows, name);
        fputs("</testsuite>\n", out);
    }
    bool made = out && fclose(out) == 0;
    if (!made)
        complain("out of memory");
    bool written = made && output_file(path, text, size);
    free(text);
    return written;
}
