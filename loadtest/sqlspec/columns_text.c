/* Prints an execution with a column for each session. */
#include "loadtest/sqlspec/columns_text.h"

#include "loadtest/cli/columns.h"
#include "loadtest/report/result.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_SHOWN = 8 };

static size_t session_of(const struct spec *spec, const json_t *event)
{
    const char *session = result_text(event, "session"), *step = result_text(event, "step");
    for (size_t i = 0; i < spec->session_count; i++)
        if (strcmp(spec->sessions[i].name, session) == 0)
            return i;
    for (size_t i = 0; i < spec->step_count; i++)
        if (strcmp(spec->steps[i].name, step) == 0)
            return spec->steps[i].session;
    return SIZE_MAX;
}

/* Writes TEXT with single spaces in the place of all white space. */
static void write_flat(FILE *out, const char *text)
{
    const char *spaces = " \t\r\n\v\f";
    for (text += strspn(text, spaces); *text;) {
        size_t word = strcspn(text, spaces);
        (void)fprintf(out, "%.*s", (int)word, text);
        text += word;
        text += strspn(text, spaces);
        if (*text)
            (void)fputc(' ', out);
    }
}

static void write_rows(FILE *out, const json_t *result)
{
    const json_t *columns = json_object_get(result, "columns"), *rows = json_object_get(result, "rows");
    size_t i, n;
    json_t *row, *cell;
    if (json_array_size(rows) == 0)
        (void)fputs("no rows", out);
    json_array_foreach(rows, i, row) {
        if (i == ROWS_SHOWN) {
            (void)fprintf(out, "; … %zu rows", json_array_size(rows));
            return;
        }
        (void)fputs(i ? "; " : "", out);
        json_array_foreach(row, n, cell) {
            (void)fprintf(out, "%s%s = %s", n ? ", " : "", json_string_value(json_array_get(columns, n)),
                          json_is_null(cell) ? "NULL" : json_string_value(cell));
        }
    }
}

static void write_result(FILE *out, const json_t *result)
{
    if (json_object_get(result, "columns")) {
        write_rows(out, result);
    } else if (json_object_get(result, "error")) {
        (void)fputs(result_text(result, "severity"), out);
        (void)fputs(": ", out);
        write_flat(out, result_text(result, "error"));
    } else if (json_object_get(result, "notification")) {
        (void)fprintf(out, "NOTIFY %s '%s' from %s", result_text(result, "notification"),
                      result_text(result, "payload"), result_text(result, "from"));
    } else {
        (void)fputs(result_text(result, "command"), out);
    }
}

/* The name of the step, and for a step that begins its SQL. */
static void write_heading(FILE *out, const json_t *event)
{
    const char *kind = result_text(event, "event");
    if (strcmp(kind, "notice") == 0) {
        write_flat(out, result_text(event, "text"));
        return;
    }
    (void)fprintf(out, "%s: ", result_text(event, "step"));
    if (strcmp(kind, "completed") == 0)
        (void)fputs("continues", out);
    else if (strcmp(kind, "cancelled") == 0 && *result_text(event, "why"))
        (void)fprintf(out, "cancelled, because it waits for %s, and nothing releases that",
                      result_text(event, "why"));
    else if (strcmp(kind, "cancelled") == 0)
        (void)fputs("cancelled, because it took too long", out);
    else
        write_flat(out, result_text(event, "sql"));
}

static void write_waits(FILE *out, const json_t *event)
{
    size_t i;
    json_t *name;
    (void)fputs("→ waits", out);
    json_array_foreach(json_object_get(event, "for"), i, name) {
        (void)fprintf(out, "%s%s", i ? ", " : " for ", json_string_value(name));
    }
}

/* Prints one cell whose text WRITE makes from JSON. */
static bool print_made(const struct columns *columns, size_t session, const char *before,
                       void (*write)(FILE *out, const json_t *from), const json_t *from)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return false;
    (void)fputs(before, out);
    write(out, from);
    bool ok = fclose(out) == 0;
    if (ok)
        columns_cell(columns, session, text);
    free(text);
    return ok;
}

static bool print_event(const struct columns *columns, const struct spec *spec, const json_t *event)
{
    size_t session = session_of(spec, event), i;
    json_t *result;
    bool ok = true;
    if (session == SIZE_MAX)
        return true;
    ok = print_made(columns, session, "", write_heading, event);
    if (strcmp(result_text(event, "event"), "waiting") == 0)
        ok = ok && print_made(columns, session, "  ", write_waits, event);
    json_array_foreach(json_object_get(event, "results"), i, result) {
        ok = ok && print_made(columns, session, "  → ", write_result, result);
    }
    return ok;
}

bool columns_print(FILE *stream, const struct spec *spec, const json_t *events, size_t width)
{
    const struct columns columns = columns_of(stream, spec->session_count, width);
    const char *names[SPEC_SESSIONS_MAX];
    size_t i;
    json_t *event;
    bool ok = true;
    for (i = 0; i < spec->session_count; i++)
        names[i] = spec->sessions[i].name;
    columns_names(&columns, names);
    json_array_foreach(events, i, event) {
        ok = ok && print_event(&columns, spec, event);
    }
    return ok;
}
