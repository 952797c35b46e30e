/* A stored result as a sheet to print: its title, its columns as data, its rows, and notes beneath. */
#ifndef OVERSELL_LOADTEST_REPORT_SHEET_H
#define OVERSELL_LOADTEST_REPORT_SHEET_H

#include "loadtest/report/notes.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum column_type {
    COLUMN_TEXT,
    COLUMN_NUMBER,
    COLUMN_MARK,    /* a promise: kept or not */
    COLUMN_VERDICT, /* the name of a verdict */
};

/* Where a column is shown. */
enum { SHOW_TABLE = 1, SHOW_PAGE = 2 /* Markdown and HTML */, SHOW_CSV = 4, SHOW_ALL = 7 };

struct column {
    const char *path;    /* in a row: "oversold", "latency_ms.p50" */
    const char *heading; /* two lines at most; "$a": what the document's member "a" says */
    enum column_type type;
    int decimals;
    unsigned shown;
    int rank; /* where there is no room the highest rank goes first; 0 stays */
    const char *meaning;
};

struct sheet {
    const json_t *document;
    char title[400];
    const struct column *columns;
    size_t column_count;
    const json_t *rows;
    struct notes notes;
    bool has_plot;
};

#define CELL_MAX 512

/* Lays out a document, which must live as long. False, having said why on stderr. */
bool sheet_open(const json_t *document, struct sheet *ret_sheet);
void sheet_close(struct sheet *sheet);

const char *sheet_heading(const struct sheet *sheet, const struct column *column);
/* The cell's value, NULL where the row has none. */
const json_t *cell_value(const struct column *column, const json_t *row);
/* The cell as people read it: digits in groups, ✓ and ✗ beside words, "–" for nothing. BUFFER of
 * CELL_MAX bytes, returned. */
const char *cell_text(const struct column *column, const json_t *row, char *buffer);
/* The cell as programs read it: plain numbers, "" for nothing. BUFFER of CELL_MAX, returned. */
const char *cell_plain(const struct column *column, const json_t *row, char *buffer);

#endif
