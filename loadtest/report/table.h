/* A result as a table that every format prints: its rows, the columns that its command declares, its title and notes. */
#ifndef OVERSELL_LOADTEST_REPORT_TABLE_H
#define OVERSELL_LOADTEST_REPORT_TABLE_H

#include "loadtest/chart/number_text.h"
#include "loadtest/report/notes.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum column_type {
    COLUMN_TEXT,
    COLUMN_NUMBER,
    COLUMN_MARK,    /* a promise: kept or not */
    COLUMN_VERDICT, /* the name of a verdict */
};

/* Where a column is shown; several, or-ed. */
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

/* Columns that several commands have. RANK as in struct column. */
/* clang-format off */
#define STRATEGY_COLUMN {"strategy", "strategy", COLUMN_TEXT, 0, SHOW_ALL, 0, "how the service protects the stock"}
#define VERDICT_COLUMN {"verdict", "verdict", COLUMN_VERDICT, 0, SHOW_ALL, 0, "what this run says about the guarantee"}
#define STOCK_KEPT_COLUMN(rank) \
    {"kept.stock", "never\noversold", COLUMN_MARK, 0, SHOW_ALL, rank, "no more units were sold than the stock had"}
#define BOOKS_KEPT_COLUMN(rank) \
    {"kept.books", "stock\ncorrect", COLUMN_MARK, 0, SHOW_ALL, rank, "units left plus units sold are the initial stock"}
/* clang-format on */

struct result_table;

/* How the results of one command are printed. Each command declares one. */
struct result_kind {
    const char *name; /* "compare": what a document's member "kind" says */
    const char *rows; /* the document's member that holds the rows */
    const struct column *columns;
    size_t column_count;
    /* The paths of the columns that a report shows first, most important first, ended by NULL. NULL: all columns. */
    const char *const *key_columns;
    /* Writes what was done, in words without a full stop. */
    void (*title)(const json_t *document, FILE *out);
    /* Writes what was found, in one sentence with a full stop, or nothing: then, and if this is NULL, the closing note says it. */
    void (*headline)(const json_t *document, FILE *out);
    notes_fn *notes;
    /* The pictures of a report, as charts_take returns them; NULL when out of memory. NULL in place of the function: none. */
    json_t *(*charts)(const json_t *document);
};

#define KEY_COLUMNS(...)                                                                                     \
    .key_columns = (const char *const[])                                                                     \
    {                                                                                                        \
        __VA_ARGS__, NULL                                                                                    \
    }
#define COLUMN_LIST(array) .columns = (array), .column_count = sizeof(array) / sizeof(array)[0]

struct result_table {
    const struct result_kind *kind;
    const json_t *document;
    char title[400];
    const json_t *rows;
    struct notes notes;
};

/* How a cell looks on a terminal and in HTML; what is coloured has a mark or a word as well. */
struct cell_style {
    const char *mark;   /* stands before the word */
    const char *colour; /* an escape sequence, or "" */
    const char *html;   /* a class of the style sheet, or "" */
};

#define CELL_MAX 512

/* Prepares DOCUMENT, a result of this kind, for printing; both must outlive the table, which table_close releases. False,
 * having said why on stderr. */
bool table_open(const struct result_kind *kind, const json_t *document, struct result_table *ret_table);
void table_close(struct result_table *table);

/* Writes what WRITE, the title or the headline of a kind, says of DOCUMENT into RET_TEXT (SIZE bytes; cut off if it is longer).
 * False: out of memory. */
bool table_sentence(void (*write)(const json_t *document, FILE *out), const json_t *document, char *ret_text,
                    size_t size);
const char *table_heading(const struct result_table *table, const struct column *column);
/* The cell's value, NULL where the row has none. */
const json_t *cell_value(const struct column *column, const json_t *row);
/* Never NULL; static storage. */
const struct cell_style *cell_style(const struct column *column, const json_t *row);
/* The cell as people read it: digits in groups, ✓ and ✗ beside words, "–" for nothing. BUFFER of
 * CELL_MAX bytes, returned. */
const char *cell_text(const struct column *column, const json_t *row, char *buffer);
/* The cell as programs read it: plain numbers, "" for nothing. BUFFER of CELL_MAX, returned. */
const char *cell_plain(const struct column *column, const json_t *row, char *buffer);

#endif
