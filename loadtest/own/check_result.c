/* How a result of `loadtest check` is printed: its columns, its title, and the notes below the table. */
#include "loadtest/own/check_row.h"

#include "loadtest/report/result.h"

#include <inttypes.h>
#include <stdio.h>

/* clang-format off */
static const struct column COLUMNS[] = {
    {"run", "run", COLUMN_NUMBER, 0, SHOW_ALL, 0, "number of the run, each after a reset"},
    {"sold", "sold", COLUMN_NUMBER, 0, SHOW_ALL, 0, "units sold, as the database says"},
    {"left", "left", COLUMN_NUMBER, 0, SHOW_ALL, 2, "units in stock after the run"},
    {"oversold", "over-\nsold", COLUMN_NUMBER, 0, SHOW_ALL, 0, "units sold beyond the stock"},
    {"drift", "drift", COLUMN_NUMBER, 0, SHOW_ALL, 0, "sold − (stock − left)"},
    {"lost", "lost\nanswers", COLUMN_NUMBER, 0, SHOW_ALL, 0, "units that the service acknowledged and that are not sold"},
    {"unacknowledged", "unacknow-\nledged", COLUMN_NUMBER, 0, SHOW_CSV, 0, "units sold whose request was refused"},
    {"accepted", "accepted", COLUMN_NUMBER, 0, SHOW_CSV, 0, "answers that promise to sell later"},
    {"statuses", "statuses", COLUMN_TEXT, 0, SHOW_ALL, 1, "answers of the service"},
    {"failed", "failed", COLUMN_NUMBER, 0, SHOW_CSV, 0, "answers that say neither sold nor sold out"},
    {"unanswered", "no\nanswer", COLUMN_NUMBER, 0, SHOW_ALL, 5, "requests without an answer in time"},
    {"latency_ms.p50", "p50\nms", COLUMN_NUMBER, 2, SHOW_ALL, 4, "half of the answers came within this time"},
    {"latency_ms.p99", "p99\nms", COLUMN_NUMBER, 2, SHOW_ALL, 3, "99 of 100 answers came within this time"},
    {"orders_per_s", "orders/s", COLUMN_NUMBER, 0, SHOW_ALL, 3, "acknowledged orders per second"},
    {"verdict", "verdict", COLUMN_VERDICT, 0, SHOW_ALL, 0,
     "clean: answers, stock and orders agree; oversold, drift, invariant-broken, answers-lost, turned-away, failing: the first that applies"},
};
/* clang-format on */

static void print_title(const json_t *document, FILE *out)
{
    const json_t *settings = json_object_get(document, "settings");
    int64_t instances = result_number(settings, "instances");
    fprintf(out,
            "%.200s: stock %" PRId64 ", %" PRId64 " requests over %" PRId64 " connections, %" PRId64
            " instance%s",
            result_text(settings, "file"), result_number(settings, "stock"),
            result_number(settings, "requests"), result_number(settings, "connections"), instances,
            instances == 1 ? "" : "s");
}

/* Buyers who were refused, and requests that failed. */
static void add_service_notes(const json_t *row, struct notes *notes)
{
    int64_t run = result_number(row, "run"),
            failed = result_number(row, "failed") + result_number(row, "unanswered");
    const char *hint = result_text(row, "hint");
    if (json_is_true(json_object_get(row, "turned_away")))
        notes_add(
            notes, NOTE_WARNING,
            "Run %" PRId64 ": %" PRId64
            " units were left although buyers were refused. If a buyer may be turned away while another one buys, use "
            "--allow turned-away.",
            run, result_number(row, "left"));
    if (failed > 0)
        notes_add(notes, NOTE_WARNING,
                  "Run %" PRId64 ": %" PRId64 " requests failed or had no answer. The first failure: %.200s",
                  run, failed, result_text(row, "first_failure"));
    if (json_is_true(json_object_get(row, "failing")))
        notes_add(
            notes, NOTE_WARNING,
            "Run %" PRId64
            ": these are more than 5 %% of all answers. %s%s. If the service may fail under load, use --allow "
            "failing.",
            run, *hint ? "Add " : "If such an answer means sold out, add its status to \"sold_out\"", hint);
}

static void add_row_notes(const json_t *row, struct notes *notes)
{
    int64_t run = result_number(row, "run"), oversold = result_number(row, "oversold"),
            drift = result_number(row, "drift"), lost = result_number(row, "lost"),
            unacknowledged = result_number(row, "unacknowledged");
    const char *broken = result_text(row, "broken_invariant");
    if (oversold > 0) {
        char stock[100] = "";
        if (drift != 0)
            snprintf(stock, sizeof stock, ", and the stock went down by %" PRId64 " units %s than were sold",
                     drift < 0 ? -drift : drift, drift > 0 ? "less" : "more");
        notes_add(
            notes, NOTE_WITNESS,
            "Run %" PRId64 ": %" PRId64
            " units were sold beyond the stock%s. loadtest explore shows which statements lead to it, and "
            "whether one request after the other does it as well.",
            run, oversold, stock);
    }
    if (oversold == 0 && drift != 0)
        notes_add(notes, NOTE_WITNESS,
                  "Run %" PRId64 ": the stock and the orders differ by %" PRId64 " units (%s).", run,
                  drift < 0 ? -drift : drift,
                  drift > 0 ? "the stock went down less than was sold"
                            : "the stock went down more than was sold");
    if (lost > 0)
        notes_add(
            notes, NOTE_WITNESS,
            "Run %" PRId64 ": the service acknowledged %" PRId64
            " units that \"sold\" does not count. Every answer with 2xx counts as sold, unless \"answers\" in the file "
            "says which answers mean sold and refused.",
            run, lost);
    if (unacknowledged > 0)
        notes_add(notes, NOTE_WITNESS,
                  "Run %" PRId64 ": %" PRId64 " units were sold by requests that were refused.", run,
                  unacknowledged);
    if (*broken)
        notes_add(notes, NOTE_WITNESS, "Run %" PRId64 ": this is not true: %.300s", run, broken);
    add_service_notes(row, notes);
}

static void print_headline(const json_t *document, FILE *out)
{
    const json_t *rows = json_object_get(document, "rows"), *worst = NULL;
    size_t i, oversold = 0;
    json_t *row;
    json_array_foreach(rows, i, row) {
        if (result_number(row, "oversold") > result_number(worst, "oversold"))
            worst = row;
        oversold += result_number(row, "oversold") > 0;
    }
    if (worst)
        fprintf(out,
                "The service oversold in %zu of %zu runs: it sold up to %" PRId64
                " units beyond the stock of %" PRId64 ".",
                oversold, json_array_size(rows), result_number(worst, "oversold"),
                result_number(json_object_get(document, "settings"), "stock"));
}

static void add_notes(const json_t *document, struct notes *notes)
{
    const json_t *rows = json_object_get(document, "rows"), *settings = json_object_get(document, "settings");
    size_t i, clean = 0;
    json_t *row;
    json_array_foreach(rows, i, row) {
        clean += result_verdict(row) == VERDICT_CLEAN;
        add_row_notes(row, notes);
    }
    if (result_number(settings, "requests") * result_number(settings, "units") <=
        result_number(settings, "stock"))
        notes_add(
            notes, NOTE_WARNING,
            "The requests cannot buy more than the stock, so no oversell can happen. Send more --requests.");
    size_t count = json_array_size(rows);
    const json_t *part = json_object_get(document, "interrupted");
    if (part)
        notes_add(notes, NOTE_WARNING,
                  "Run %" PRId64 " was interrupted after %" PRId64 " of %" PRId64
                  " requests (%s): sold %" PRId64 ", left %" PRId64 ", oversold %" PRId64 ".",
                  result_number(part, "run"), result_number(part, "ended"),
                  result_number(settings, "requests"), result_text(part, "statuses"),
                  result_number(part, "sold"), result_number(part, "left"), result_number(part, "oversold"));
    if (part && clean == count)
        notes_add(notes, NOTE_CLOSING, "Interrupted: nothing follows from a part of a run.");
    else if (clean < count && count == 1)
        notes_add(notes, NOTE_CLOSING, "The run is NOT clean.");
    else if (clean < count)
        notes_add(notes, NOTE_CLOSING, "%zu of %zu runs are NOT clean.", count - clean, count);
    else
        notes_add(notes, NOTE_CLOSING,
                  "%s. Load does not try every schedule: an oversell that needs a rare moment can be missed.",
                  clean == 1 ? "The run is clean" : "All runs are clean");
}

const struct result_kind check_result = {
    .name = "check",
    .rows = "rows",
    COLUMN_LIST(COLUMNS),
    KEY_COLUMNS("run", "verdict", "sold", "oversold", "drift", "lost", "orders_per_s", "latency_ms.p99"),
    .title = print_title,
    .headline = print_headline,
    .notes = add_notes,
    .charts = check_charts,
};
