/* The formats: every one of them with names and texts that try to break out of it, and the table at every
 * width. */
#include "tests/unit/unit.h"

#include "base/text.h"
#include "loadtest/chart/chart.h"
#include "loadtest/chart/gnuplot.h"
#include "loadtest/chart/svg.h"
#include "loadtest/cli/progress.h"
#include "loadtest/cli/terminal.h"
#include "loadtest/compare/compare_result.h"
#include "loadtest/report/format.h"
#include "loadtest/report/reproduce.h"
#include "loadtest/result_kinds.h"

#include <stdio.h>
#include <stdlib.h>

static const char EVIL[] = "<script>alert(\"1\")</script>&|`x`,';set output '/evil'\n=cmd";

/* A result of two rows, the second of which has the name and the witness given. */
static json_t *document_with(const char *name, const char *witness)
{
    json_t *document = json_pack(
        "{s:i, s:s, s:{s:i, s:i, s:i, s:i, s:i, s:i, s:s}, s:{s:i}, s:["
        "{s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:f, s:{s:f}, s:{s:b, s:b, s:b}, s:n},"
        "{s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:n, s:n, s:{s:b, s:b, s:b}, s:s}]}",
        "version", 1, "kind", "compare", "settings", "requests", 400, "quantity", 1, "stock", 100,
        "duration_ms", 1000, "connections", 16, "instances", 1, "note", name, "machine", "cpus", 2, "rows", //
        "strategy", "atomic-statement", "guarantee", "safe", "verdict", "ok", "stock", 100, "sold", 100,
        "oversold", 0, "drift", 0, "orders_per_s", 12345.6, "latency_ms", "p99", 0.04, "kept", "stock", 1,
        "books", 1, "answers", 1,
        "witness", //
        "strategy", name, "guarantee", "unsafe", "verdict", "oversold-as-expected", "stock", 100, "sold",
        1400, "oversold", 1300, "drift", -7, "orders_per_s", "latency_ms", "kept", "stock", 0, "books", 0,
        "answers", 1, "witness", witness);
    assert_non_null(document);
    return document;
}

/* What FORMAT makes of it, to be freed. */
static char *print(format_fn *format, const json_t *document, struct page page)
{
    struct result_table table;
    char *text = NULL;
    size_t size;
    assert_true(table_open(result_kind_of(document, "result.json"), document, &table));
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    assert_true(format(&table, &page, out));
    assert_int_equal(fclose(out), 0);
    table_close(&table);
    return text;
}

static void assert_has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("'%s' is not in:\n%s", part, text);
}

static void assert_has_not(const char *text, const char *part)
{
    if (strstr(text, part))
        fail_msg("'%s' is in:\n%s", part, text);
}

/* ---- the table ----------------------------------------------------------------------------------------- */

static void test_table(void **state)
{
    json_auto_t *document = document_with("read-write", "orders 41 and 57 both saw 12 left");
    char *text = print(format_table, document, (struct page){.width = 0});
    assert_has(text, "✗ oversold-as-expected");
    assert_has(text, "✓ ok");
    assert_has(text, "✗ no");
    assert_has(text, "12,346"); /* digits in groups, rounded */
    assert_has(text, "1,300");
    assert_has(text, "–");   /* no rate */
    assert_has(text, "0.0"); /* 0.04 ms to one place, and no minus sign */
    assert_has(text, "read-write: sold 1400 of 100; orders 41 and 57 both saw 12 left.");
    assert_has(text, "2 strategies: 1 ok, 1 oversold-as-expected. All as expected.");
    assert_has_not(text, "Left out");
    assert_has_not(text, "\033");
    assert_has_not(text, "medians");
    free(text);
}

static void test_the_title_names_several_runs(void **state)
{
    json_auto_t *document = document_with("read-write", "");
    json_object_set_new(json_object_get(document, "settings"), "repeat", json_integer(3));
    char *text = print(format_markdown, document, (struct page){.width = 0});
    assert_has(text, "rates and times are medians of 3 runs");
    free(text);
}

static void test_colour_comes_beside_words(void **state)
{
    json_auto_t *document = document_with("read-write", "…");
    char *text = print(format_table, document, (struct page){.colour = true});
    assert_has(text, "\033[32m✓ ok\033[0m");
    free(text);
}

/* Whatever the width, no line of a table is longer, unless what must be shown is; and what was left out is
 * named. */
static void test_every_width(void **state)
{
    json_auto_t *document = document_with("read-write", "orders 41 and 57 both saw 12 left");
    for (size_t width = 60; width <= 260; width++) {
        char *text = print(format_table, document, (struct page){.width = width});
        bool complete = strstr(text, "retries") && !strstr(text, "Left out");
        for (char *rest = text, *line; (line = strsep(&rest, "\n"));)
            if (display_width(line) > width)
                fail_msg("%zu columns where there are %zu: %s", display_width(line), width, line);
        free(text);
        assert_true(complete || width < 200);
    }
}

static void test_what_had_to_be_slowed_down_says_so(void **state)
{
    json_auto_t *document = document_with("read-write", "…");
    json_t *row = json_array_get(json_object_get(document, "rows"), 1);
    assert_int_equal(json_object_set_new(row, "slowed_down", json_true()), 0);
    assert_int_equal(json_object_set_new(row, "think_ms", json_integer(10)), 0);
    char *text = print(format_table, document, (struct page){0});
    assert_has(text, "✗ oversold-as-expected (think 10 ms)");
    assert_has(text, "no oversell at full speed");
    free(text);
}

static void test_what_was_sold_out_early_says_so(void **state)
{
    json_auto_t *document = document_with("skip-locked", "…");
    json_t *row = json_array_get(json_object_get(document, "rows"), 1);
    assert_int_equal(json_object_set_new(row, "sold_out_early", json_true()), 0);
    char *text = print(format_table, document, (struct page){0});
    assert_has(text, "skip-locked: sold out before the throughput phase ended");
    free(text);
}

static void test_failures_are_said(void **state)
{
    static const struct {
        const char *verdict, *says;
    } CASES[] = {
        {"broken", "This is a bug"},
        {"not-caught", "Try more --connections"},
        {"mixed", "--product"},
        {"unavailable", "not available: no server"},
        {"nonsense", "NOT all as expected"},
    };
    for (size_t i = 0; i < COUNT(CASES); i++) {
        json_auto_t *document = document_with("read-write", "…");
        json_t *row = json_array_get(json_object_get(document, "rows"), 1);
        json_object_set_new(row, "verdict", json_string(CASES[i].verdict));
        json_object_set_new(row, "reason", json_string("no server"));
        char *text = print(format_table, document, (struct page){0});
        assert_has(text, CASES[i].says);
        free(text);
    }
}

/* The note below a row that load alone did not break names a column only if the column says something. */
static void test_what_load_did_not_break_says_how_to_see_it(void **state)
{
    static const struct {
        const char *guarantee, *shown, *says, *says_not;
    } CASES[] = {
        {"while-lease-holds", "lease expires: sold 2 of 1", "see the column \"breaks when\"", "explore"},
        {"while-lease-holds", NULL, "loadtest explore", "breaks when\"."},
        {"one-process", NULL, "--instances 2", "explore"},
    };
    for (size_t i = 0; i < COUNT(CASES); i++) {
        json_auto_t *document = document_with("a-lock", "…");
        json_t *row = json_array_get(json_object_get(document, "rows"), 1);
        json_object_set_new(row, "verdict", json_string("flawed"));
        json_object_set_new(row, "guarantee", json_string(CASES[i].guarantee));
        json_object_set_new(row, "shown",
                            CASES[i].shown ? json_pack("{s:s}", "breaks_when", CASES[i].shown) : json_null());
        char *text = print(format_markdown, document, (struct page){0});
        assert_has(text, CASES[i].says);
        assert_has_not(text, CASES[i].says_not);
        free(text);
    }
}

/* More load does not help if a search of schedules found nothing. */
static void test_a_flaw_that_no_schedule_showed(void **state)
{
    json_auto_t *document = document_with("a-lock", "…");
    json_t *row = json_array_get(json_object_get(document, "rows"), 1);
    json_object_set_new(row, "verdict", json_string("not-caught"));
    json_object_set_new(row, "finding", json_string("no schedule of two orders failed"));
    char *text = print(format_markdown, document, (struct page){0});
    assert_has(text, "a-lock: no schedule of two orders failed.");
    assert_has(text, "This is a bug");
    assert_has_not(text, "--connections");
    free(text);
}

/* ---- what others read ---------------------------------------------------------------------------------- */

static void test_json_is_the_document(void **state)
{
    json_auto_t *document = document_with(EVIL, EVIL);
    char *text = print(format_json, document, (struct page){0});
    json_auto_t *again = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    assert_true(json_equal(document, again));
    free(text);
}

/* A cell that is too long is cut off, maybe within a character. XML with a part of one cannot be read. */
static void test_junit_has_whole_characters_only(void **state)
{
    char name[2 * CELL_MAX + 1] = "";
    for (size_t i = 0; i < CELL_MAX; i++)
        memcpy(name + 2 * i, "\xc3\xa9", 3);
    json_auto_t *document = document_with(name, EVIL);
    char *text = print(format_junit, document, (struct page){0});
    for (size_t at = 0, length; text[at]; at += length) {
        (void)text_code_point(text + at, &length);
        if (length == 0)
            fail_msg("no character: %.20s", text + at);
    }
    assert_has(text, "\xc3\xa9?");
    assert_has(text, "&lt;script&gt;");
    free(text);
}

static void test_csv(void **state)
{
    json_auto_t *document = document_with("a \"b\", c", "=1+2");
    char *text = print(format_csv, document, (struct page){0});
    assert_true(strncmp(text, "strategy,guarantee,", 19) == 0);
    assert_has(text, "\r\n\"a \"\"b\"\", c\",unsafe,false,");
    assert_has(text, ",\"'=1+2\","); /* no spreadsheet takes it for a formula */
    assert_has(text, ",1300,-7,");   /* a negative number is a number */
    assert_has(text, ",12345.6,");
    free(text);
}

static void test_markdown_cells_stay_cells(void **state)
{
    json_auto_t *document = document_with(EVIL, EVIL);
    char *text = print(format_markdown, document, (struct page){0});
    assert_has_not(text, "<script>alert");
    assert_has(text, "&lt;script");
    assert_has(text, "\\|\\`x\\`");
    int columns = 0;
    for (char *rest = text, *line; (line = strsep(&rest, "\n"));) {
        int bars = 0;
        for (char *c = line; *c; c++)
            bars += *c == '|' && (c == line || c[-1] != '\\');
        if (*line != '|')
            continue;
        if (columns == 0)
            columns = bars;
        assert_int_equal(bars, columns);
    }
    assert_true(columns > 10);
    free(text);
}

static void test_html_is_escaped(void **state)
{
    json_auto_t *document = document_with(EVIL, EVIL);
    char *text = print(format_html, document, (struct page){0});
    assert_has_not(text, "<script>alert");
    assert_has(text, "&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&amp;|");
    assert_has(text, "<!DOCTYPE html>");
    assert_has_not(text, "src="); /* nothing is loaded from elsewhere */
    assert_has_not(text, "url(");
    free(text);
}

/* What a report begins with. */
static void test_html_begins_with_the_finding(void **state)
{
    json_auto_t *document = document_with("read-write", "orders 41 and 57 both saw 12 left");
    char *text = print(format_html, document, (struct page){0});
    assert_has(text, "<h1>read-write sold 1400 of 100; atomic-statement held at 12,346 orders/s.</h1>");
    assert_has(text, "does not contain its command line");
    free(text);
    assert_int_equal(json_object_set_new(document, "command", json_string("build/loadtest compare <b>")), 0);
    text = print(format_html, document, (struct page){0});
    assert_has(text, "<pre id=\"command\">build/loadtest compare &lt;b&gt;</pre>");
    free(text);
}

static void test_the_command_is_one_for_a_shell(void **state)
{
    const char *const argv[] = {"compare",     "--format",
                                "json",        "--strategies",
                                "a'b",         "--export-html=x.html",
                                "--stock",     "9 or so",
                                "--output",    "o",
                                "--formatted", "--progress",
                                "json",        "--servers",
                                "environment"};
    reproduce_by(sizeof argv / sizeof argv[0], (char *const *)argv);
    assert_string_equal(reproduce_command(),
                        "build/loadtest compare --strategies 'a'\\''b' --stock '9 or so' "
                        "--formatted --servers environment");
    char longest[5000] = "";
    memset(longest, 'x', sizeof longest - 1);
    reproduce_by(2, (char *const *)(const char *const[]){"check", longest});
    assert_string_equal(reproduce_command(), ""); /* too long to be kept whole */
}

static void test_a_plot_takes_no_orders_from_a_name(void **state)
{
    if (!gnuplot_is_possible())
        skip();
    json_auto_t *document = document_with(EVIL, EVIL);
    char *text = print(format_svg, document, (struct page){0});
    assert_has(text, "<svg");
    assert_has(text, "</svg>");
    assert_has(text, "atomic-statement");
    assert_has(text, "?script?alert");
    free(text);
}

static void test_other_documents(void **state)
{
    struct result_table table;
    json_auto_t *bench = json_pack("{s:i, s:[{s:s, s:f}]}", "version", 1, "ratios", "name", "sold-out",
                                   "value", 0.9123);
    char *text = print(format_table, bench, (struct page){0});
    assert_has(text, "sold-out");
    assert_has(text, "0.912");
    free(text);
    json_auto_t *unknown = json_pack("{s:i, s:s, s:[]}", "version", 1, "kind", "poem", "rows");
    assert_null(result_kind_of(unknown, "result.json"));
    json_auto_t *empty = json_pack("{s:i, s:s}", "version", 1, "kind", "compare");
    assert_false(table_open(&compare_result, empty, &table));
}

static void test_a_sparkline_has_a_block_for_each_number(void **state)
{
    char buffer[SPARKLINE_MAX];
    assert_string_equal(progress_sparkline((const double[]){0, 50, 100}, 3, buffer), "▁▅█");
    assert_string_equal(progress_sparkline((const double[]){0, 0}, 2, buffer), "▁▁");
    assert_string_equal(progress_sparkline(NULL, 0, buffer), "");
}

/* The rates of an earlier step, and a count that begins again, are no drop of the rate. */
static void test_rates_begin_again_with_a_step(void **state)
{
    struct progress progress = progress_begin(2);
    progress_count(&progress, 1000);
    progress.counted_us -= 1000000;
    progress_count(&progress, 1500);
    assert_int_equal(progress.rate_count, 1);
    assert_true(progress.rates[0] > 200 && progress.rates[0] <= 500);
    progress.counted_us -= 1000000;
    progress_count(&progress, 10);
    assert_int_equal(progress.rate_count, 1);
    for (int i = 0; i < 3 * PROGRESS_RATES; i++) {
        progress.counted_us -= 1000000;
        progress_count(&progress, 10 + i);
    }
    assert_int_equal(progress.rate_count, PROGRESS_RATES);
    progress_label(&progress, "next");
    assert_int_equal(progress.rate_count, 0);
}

/* Adds a chart of a line from (0, FIRST) to (1, LAST). */
static void add_line(struct charts *charts, double first, double last, bool log_y)
{
    json_t *chart = chart_add(
        charts, &(struct chart_look){
                    .kind = CHART_LINES, .title = "line", .x = "seconds", .y = "ms", .log_y = log_y});
    json_t *series = chart_add_series(charts, chart, "line", 0);
    chart_add_point(charts, series, 0, first);
    chart_add_point(charts, series, 1, last);
}

/* A drawing of such a chart; to be freed. */
static char *drawn_line(double first, double last, bool log_y)
{
    struct charts charts = {0};
    char *text;
    const char **svg;
    add_line(&charts, first, last, log_y);
    json_auto_t *list = charts_take(&charts);
    assert_int_equal(charts_draw(list, &text, &svg), 1);
    char *copy = strdup(svg[0]);
    assert_non_null(copy);
    free(svg);
    free(text);
    return copy;
}

/* Bytes after the end of the text are not a drawing. */
static void test_gnuplots_output_may_end_with_a_drawing(void **state)
{
    char text[] = "<svg>1</svg>\n<svg>2</svg>\0<svg>behind</svg>";
    const char *svg[3];
    struct charts charts = {0};
    for (int i = 0; i < 3; i++)
        add_line(&charts, 1, 2, false);
    json_auto_t *list = charts_take(&charts);
    charts_cut(list, text, svg);
    assert_string_equal(svg[0], "<svg>1</svg>");
    assert_string_equal(svg[1], "<svg>2</svg>");
    assert_string_equal(svg[2], "");
}

static void test_an_axis_has_labels_that_people_read(void **state)
{
    if (!gnuplot_is_possible())
        skip();
    char *powers = drawn_line(10, 1000, true), *more = drawn_line(100, 50000, true),
         *zeros = drawn_line(0, 0, false);
    assert_has(powers, ">10<");
    assert_has(powers, ">1,000<");
    assert_has(more, ">100<");
    assert_null(strstr(zeros, "0.00000"));
    assert_has(zeros, ">1<");
    free(powers);
    free(more);
    free(zeros);
}

static void test_a_narrow_line_keeps_what_matters(void **state)
{
    struct progress progress = {
        .steps = 47, .step = 22, .label = "select-for-update", .rates = {100, 200}, .rate_count = 2};
    char line[PROGRESS_LINE_MAX];
    const char *detail = "; 56 of 1234 oversold so far";
    assert_string_equal(progress_line(&progress, 0.5, 30, detail, 150, line),
                        "[############------------] 23 of 47, about 30 s left  select-for-update; 56 of 1234 "
                        "oversold so far, 200 orders/s ▅█");
    assert_string_equal(progress_line(&progress, 0.5, 30, detail, 79, line),
                        "[#####-----] 23 of 47, about 30 s left  select-for-update; 56 of 1234 oversold ");
    assert_string_equal(progress_line(&progress, 0.5, 30, "", 72, line),
                        "[#####-----] 23 of 47, about 30 s left  select-for-update, 200 orders/s");
    assert_string_equal(progress_line(&progress, 1, 30, "", 5, line), "[####");
    const struct progress one = {.steps = 1, .label = "schedules"};
    assert_string_equal(progress_line(&one, 0.5, 30, " run: 1234", 72, line),
                        "[#####-----] about 30 s left  schedules run: 1234");
}

/* The details that follow a label would come too late if the label had taken their turn. */
static void test_a_label_leaves_the_turn_to_the_details(void **state)
{
    struct progress progress = progress_begin(2);
    progress.shown = true;
    progress_label(&progress, "next");
    assert_int_equal(progress.drawn_us, 0);
    progress_update(&progress, 0.5, ": details");
    assert_true(progress.drawn_us > 0 && progress.done == 0.25);
    progress_update(&progress, 0.9, ": too early");
    assert_true(progress.done == 0.25);
    progress_wipe();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_the_title_names_several_runs),
        cmocka_unit_test(test_colour_comes_beside_words),
        cmocka_unit_test(test_every_width),
        cmocka_unit_test(test_what_had_to_be_slowed_down_says_so),
        cmocka_unit_test(test_what_was_sold_out_early_says_so),
        cmocka_unit_test(test_failures_are_said),
        cmocka_unit_test(test_what_load_did_not_break_says_how_to_see_it),
        cmocka_unit_test(test_a_flaw_that_no_schedule_showed),
        cmocka_unit_test(test_json_is_the_document),
        cmocka_unit_test(test_junit_has_whole_characters_only),
        cmocka_unit_test(test_csv),
        cmocka_unit_test(test_markdown_cells_stay_cells),
        cmocka_unit_test(test_html_is_escaped),
        cmocka_unit_test(test_a_sparkline_has_a_block_for_each_number),
        cmocka_unit_test(test_rates_begin_again_with_a_step),
        cmocka_unit_test(test_gnuplots_output_may_end_with_a_drawing),
        cmocka_unit_test(test_an_axis_has_labels_that_people_read),
        cmocka_unit_test(test_a_narrow_line_keeps_what_matters),
        cmocka_unit_test(test_a_label_leaves_the_turn_to_the_details),
        cmocka_unit_test(test_html_begins_with_the_finding),
        cmocka_unit_test(test_the_command_is_one_for_a_shell),
        cmocka_unit_test(test_a_plot_takes_no_orders_from_a_name),
        cmocka_unit_test(test_other_documents),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
