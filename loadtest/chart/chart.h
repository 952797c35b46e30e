/* Describes charts as JSON data: their title, axes and numbers. svg.h draws them; a report prints the same numbers as a table. No I/O. */
#ifndef OVERSELL_LOADTEST_CHART_CHART_H
#define OVERSELL_LOADTEST_CHART_CHART_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* Bounds of one chart; what is more is left out of the picture and of its table. */
enum {
    CHART_MARKS_MAX = 4,
    CHART_SPAN_MARKS = 3,
    CHART_COLUMNS_MAX = 64,
    CHART_SERIES_MAX = 6,
    CHART_ROWS_MAX = 64,
    CHART_POINTS_MAX = 2000
};

enum chart_kind {
    CHART_BARS,   /* rows of one value: a bar each, its value at its end */
    CHART_RANGES, /* rows of up to CHART_MARKS_MAX values, each with its own mark */
    CHART_SPANS,  /* CHART_SPAN_MARKS values with their own marks, then the start and the end of a bar */
    CHART_LINES,  /* series of points, joined */
    CHART_STEPS,  /* the same for counts: a value stays until the next point */
    /* Pictures that are tables, and need no drawing: */
    CHART_MATRIX, /* cells of a row and a column, each with a text and a level */
    CHART_LANES,  /* steps, each in its lane, with the stock after it between the first two lanes */
};

struct chart_look {
    enum chart_kind kind;
    const char *title;        /* what it shows; not drawn, but printed above the picture */
    const char *about;        /* how to read it, one sentence with a full stop */
    const char *x, *y;        /* names of the axes, with units; of rows only X */
    bool log_x, log_y;        /* logarithmic scales; bars have none */
    double x_most;            /* the x axis of rows reaches at least this value; 0: as far as the rows */
    bool bad;                 /* the values of CHART_BARS are damage, in the colour of a warning */
    int decimals;             /* of the values in labels and tables */
    const char *group;        /* charts with the same group stand together under this heading; NULL: none */
    const char *name_of_rows; /* heading of the table's first column; NULL: "strategy" */
};

/* Charts that are being made. After a failure nothing more is added. Zeroed: none. */
struct charts {
    json_t *list;
    bool failed; /* out of memory */
};

/* Adds a chart; borrowed, NULL after a failure. The functions below accept that NULL. */
json_t *chart_add(struct charts *charts, const struct chart_look *look);
/* Names the values of a CHART_RANGES or CHART_SPANS, the columns of a CHART_MATRIX, or the lanes; ended by NULL. */
void chart_name_marks(struct charts *charts, json_t *chart, const char *const *names);
/* How many values of each row have their own mark. */
size_t chart_marks(const json_t *chart);
/* Adds a row of COUNT values; NaN for one that is missing. */
void chart_add_row(struct charts *charts, json_t *chart, const char *name, const double *values,
                   size_t count);
/* Adds a series, drawn in a colour and a dash pattern of this number, from 0; CHART_DAMAGE is the colour of a warning. Borrowed. */
enum { CHART_DAMAGE = 1, CHART_COLOURS = 6 };
json_t *chart_add_series(struct charts *charts, json_t *chart, const char *name, int colour);
/* Adds a point to a series; X ascends. */
void chart_add_point(struct charts *charts, json_t *series, double x, double y);
/* Labels the x axis at these places only. */
void chart_add_tic(struct charts *charts, json_t *chart, double x, const char *label);
/* Adds a row of cells to a CHART_MATRIX; borrowed. */
json_t *chart_add_cells(struct charts *charts, json_t *chart, const char *name);
/* How bad a cell is, from 0 to CHART_WORST. */
enum { CHART_WORST = 4 };
/* Adds a cell to such a row. */
void chart_add_cell(struct charts *charts, json_t *cells, const char *text, int level);
/* Adds a step to a CHART_LANES, in the lane of this number. MIDDLE is what stands between the lanes; BAD: it is a fault or damage. */
void chart_add_step(struct charts *charts, json_t *chart, size_t lane, const char *text, const char *middle,
                    bool bad);
/* Of GROUP there would be COUNT charts if no limit cut them: a report says how many of them are drawn. */
void chart_count_group(struct charts *charts, const char *group, size_t count);
/* The array of charts, the caller's; NULL after a failure. */
json_t *charts_take(struct charts *charts);

#endif
