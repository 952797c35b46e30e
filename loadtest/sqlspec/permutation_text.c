/* Writes the report of a permutation as PostgreSQL's isolation tester prints it, so that the two can be compared as texts. */
#include "loadtest/cli/plain_text.h"
#include "loadtest/report/result.h"
#include "loadtest/sqlspec/permutation.h"

#include <string.h>

enum { COLUMNS_MAX = 256 };

/* Digits, signs and exponents, with a digit at the end and no E at the start. */
static bool looks_like_number(const char *text)
{
    size_t length = strlen(text);
    if (length == 0)
        return true;
    return text[strspn(text, "0123456789.Ee -")] == 0 && *text != 'E' && *text != 'e' &&
           text[length - 1] >= '0' && text[length - 1] <= '9';
}

static void print_cell(FILE *stream, const char *text, size_t width, bool is_number)
{
    int space = (int)(width - plain_text(text, NULL, 0));
    if (is_number)
        plain_print(stream, "%*s%s", space, "", text);
    else
        plain_print(stream, "%s%*s", text, space, "");
}

/* Columns of numbers are aligned on the right, others on the left; NULL is empty. */
static void print_rows(FILE *stream, const json_t *result)
{
    const json_t *columns = json_object_get(result, "columns"), *rows = json_object_get(result, "rows");
    size_t widths[COLUMNS_MAX], count = json_array_size(columns), i, row_number;
    bool numbers[COLUMNS_MAX];
    json_t *row;
    count = count > COLUMNS_MAX ? COLUMNS_MAX : count;
    for (i = 0; i < count; i++) {
        widths[i] = plain_text(json_string_value(json_array_get(columns, i)), NULL, 0);
        numbers[i] = true;
        json_array_foreach(rows, row_number, row) {
            const char *text = json_string_value(json_array_get(row, i));
            size_t width = text ? plain_text(text, NULL, 0) : 0;
            widths[i] = width > widths[i] ? width : widths[i];
            numbers[i] = numbers[i] && (!text || looks_like_number(text));
        }
    }
    for (i = 0; i < count; i++) {
        print_cell(stream, json_string_value(json_array_get(columns, i)), widths[i], numbers[i]);
        (void)fputs(i + 1 < count ? "|" : "\n", stream);
    }
    for (i = 0; i < count; i++) {
        for (size_t n = 0; n < widths[i]; n++)
            (void)fputc('-', stream);
        (void)fputs(i + 1 < count ? "+" : "\n", stream);
    }
    json_array_foreach(rows, row_number, row) {
        for (i = 0; i < count; i++) {
            const char *text = json_string_value(json_array_get(row, i));
            print_cell(stream, text ? text : "", widths[i], numbers[i]);
            (void)fputs(i + 1 < count ? "|" : "\n", stream);
        }
    }
    size_t height = json_array_size(rows);
    plain_print(stream, "(%zu row%s)\n\n", height, height == 1 ? "" : "s");
}

/* SESSION: whose results they are; NULL for setup and teardown, of which only rows are printed. */
static void print_results(FILE *stream, const json_t *results, const char *session)
{
    size_t i;
    json_t *result;
    json_array_foreach(results, i, result) {
        if (json_object_get(result, "columns"))
            print_rows(stream, result);
        else if (session && json_object_get(result, "error"))
            plain_print(stream, *result_text(result, "severity") ? "%s:  %s\n" : "%s%s\n",
                        result_text(result, "severity"), result_text(result, "error"));
        else if (session && json_object_get(result, "notification"))
            plain_print(stream, "%s: NOTIFY \"%s\" with payload \"%s\" from %s\n", session,
                        result_text(result, "notification"), result_text(result, "payload"),
                        result_text(result, "from"));
    }
}

void permutation_print(FILE *stream, const json_t *event)
{
    const char *kind = result_text(event, "event"), *step = result_text(event, "step");
    const json_t *results = json_object_get(event, "results");
    size_t i;
    json_t *name;
    if (strcmp(kind, "starting") == 0) {
        (void)fputs("\nstarting permutation:", stream);
        json_array_foreach(json_object_get(event, "steps"), i, name) {
            plain_print(stream, " %s", json_string_value(name));
        }
        (void)fputc('\n', stream);
    } else if (strcmp(kind, "step") == 0) {
        plain_print(stream, "step %s: %s\n", step, result_text(event, "sql"));
        print_results(stream, results, result_text(event, "session"));
    } else if (strcmp(kind, "waiting") == 0) {
        plain_print(stream, "step %s: %s <waiting ...>\n", step, result_text(event, "sql"));
    } else if (strcmp(kind, "completed") == 0) {
        plain_print(stream, "step %s: <... completed>\n", step);
        print_results(stream, results, result_text(event, "session"));
    } else if (strcmp(kind, "notice") == 0) {
        plain_print(stream, "%s: %s", result_text(event, "session"), result_text(event, "text"));
    } else if (strcmp(kind, "cancelled") == 0) {
        plain_print(stream, "step %s was cancelled after %lld ms\n", step,
                    (long long)json_integer_value(json_object_get(event, "ms")));
    } else {
        print_results(stream, results, NULL);
    }
}
