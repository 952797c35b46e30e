/* What two looks at the services' metrics tell about one strategy: histograms, percentiles, counts. */
#include "loadtest/client/scrape.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_BYTES 1024

/* ---- reading ------------------------------------------------------------------------------------------- */

/* One sample of the text format: NAME{LABELS} VALUE, cut into its parts in place. */
struct sample {
    const char *name;
    char *labels; /* between the braces; "" without */
    double value;
};

static bool cut_sample(char *line, struct sample *ret_sample)
{
    static char no_labels[1];
    char *name_end = line + strcspn(line, "{ ");
    char *labels = no_labels;
    char *value = name_end;
    if (*name_end == '{') {
        labels = name_end + 1;
        bool quoted = false;
        char *c = labels;
        for (; *c && (quoted || *c != '}'); c++) {
            if (*c == '\\' && c[1])
                c++;
            else if (*c == '"')
                quoted = !quoted;
        }
        if (!*c)
            return false;
        *c = 0;
        value = c + 1;
    }
    char *end;
    double number = strtod(value, &end);
    if (end == value)
        return false;
    *name_end = 0;
    *ret_sample = (struct sample){.name = line, .labels = labels, .value = number};
    return true;
}

/* The quote that ends a value; NULL if none does. */
static const char *find_quote(const char *value)
{
    for (; *value && *value != '"'; value++)
        if (*value == '\\' && value[1])
            value++;
    return *value ? value : NULL;
}

/* Finds the value of a label, escapes and all; NULL if it is not there. */
static const char *find_label(const char *labels, const char *label, size_t *ret_length)
{
    size_t length = strlen(label);
    for (const char *c = labels; *c;) {
        const char *name = c + strspn(c, ", ");
        const char *open = strstr(name, "=\"");
        const char *close = open ? find_quote(open + 2) : NULL;
        if (!close)
            return NULL;
        if ((size_t)(open - name) == length && strncmp(name, label, length) == 0) {
            *ret_length = (size_t)(close - open - 2);
            return open + 2;
        }
        c = close + 1;
    }
    return NULL;
}

static bool label_is(const char *labels, const char *label, const char *value)
{
    size_t length;
    const char *found = find_label(labels, label, &length);
    return found && strlen(value) == length && strncmp(found, value, length) == 0;
}

/* ---- histograms ---------------------------------------------------------------------------------------- */

/* Adds COUNT samples to the bucket of that bound, which is made if it is missing. */
static bool add_bucket(struct histogram *histogram, double bound, double count)
{
    size_t i = 0;
    while (i < histogram->buckets && histogram->bound[i] < bound)
        i++;
    if (i == histogram->buckets || histogram->bound[i] > bound) {
        if (histogram->buckets == HISTOGRAM_MAX)
            return false;
        size_t moved = (histogram->buckets - i) * sizeof(double);
        memmove(&histogram->bound[i + 1], &histogram->bound[i], moved);
        memmove(&histogram->count[i + 1], &histogram->count[i], moved);
        histogram->bound[i] = bound;
        histogram->count[i] = 0;
        histogram->buckets++;
    }
    histogram->count[i] += count;
    return true;
}

/* The text counts cumulatively, bucket after bucket: what has been read of the current series. */
struct series {
    double bound, cumulative;
};

static bool add_histogram_sample(struct histogram *histogram, struct series *series,
                                 const struct sample *sample)
{
    size_t length;
    const char *le = find_label(sample->labels, "le", &length);
    if (!le)
        return false;
    char *end;
    double bound = strtod(le, &end); /* reads "+Inf" as well */
    if (end != le + length || isnan(bound))
        return false;
    if (bound <= series->bound)
        *series = (struct series){0}; /* another series begins, with other labels beside ours */
    double count = sample->value - series->cumulative;
    *series = (struct series){.bound = bound, .cumulative = sample->value};
    return count >= 0 && add_bucket(histogram, bound, count);
}

/* Samples that are simply added up, and where. */
static const struct {
    const char *name;
    size_t offset;
} COUNTERS[] = {
    {"oversell_db_round_trips_total", offsetof(struct scrape, round_trips)},
    {"oversell_order_tries_total", offsetof(struct scrape, tries)},
    {"oversell_orders_total", offsetof(struct scrape, orders)},
    {"oversell_lock_round_trips_total", offsetof(struct scrape, lock_round_trips)},
    {"oversell_lock_held_seconds_count", offsetof(struct scrape, releases)},
    {"oversell_lock_wake_ups_total", offsetof(struct scrape, wake_ups)},
};

#define COUNTER_COUNT (sizeof COUNTERS / sizeof COUNTERS[0])

static double *counter(struct scrape *scrape, size_t i)
{
    return (double *)(void *)((char *)scrape + COUNTERS[i].offset);
}

/* An order that was written, or accepted and written later. */
static bool is_sale(const char *labels)
{
    return label_is(labels, "outcome", "created") || label_is(labels, "outcome", "accepted");
}

bool scrape_add(const char *text, const char *strategy, struct scrape *sum)
{
    struct series created = {0}, lock_wait = {0};
    for (const char *line = text; *line;) {
        size_t length = strcspn(line, "\n");
        char copy[LINE_MAX_BYTES];
        struct sample sample;
        if (length > 0 && length < sizeof copy && *line != '#') {
            memcpy(copy, line, length);
            copy[length] = 0;
            if (cut_sample(copy, &sample) && label_is(sample.labels, "strategy", strategy)) {
                if (strcmp(sample.name, "oversell_order_seconds_bucket") == 0) {
                    if (is_sale(sample.labels) && !add_histogram_sample(&sum->created, &created, &sample))
                        return false;
                } else if (strcmp(sample.name, "oversell_lock_wait_seconds_bucket") == 0) {
                    if (!add_histogram_sample(&sum->lock_wait, &lock_wait, &sample))
                        return false;
                }
                for (size_t i = 0; i < COUNTER_COUNT; i++)
                    if (strcmp(sample.name, COUNTERS[i].name) == 0)
                        *counter(sum, i) += sample.value;
            }
        }
        line += length + (line[length] == '\n');
    }
    return true;
}

static void subtract(struct histogram *histogram, const struct histogram *before)
{
    for (size_t i = 0; i < before->buckets; i++)
        (void)add_bucket(histogram, before->bound[i],
                         -before->count[i]); /* a bucket that was there is there */
}

void scrape_difference(const struct scrape *before, const struct scrape *after, struct scrape *ret_difference)
{
    *ret_difference = *after;
    subtract(&ret_difference->created, &before->created);
    subtract(&ret_difference->lock_wait, &before->lock_wait);
    struct scrape earlier = *before;
    for (size_t i = 0; i < COUNTER_COUNT; i++)
        *counter(ret_difference, i) -= *counter(&earlier, i);
}

/* ---- percentiles --------------------------------------------------------------------------------------- */

double histogram_percentile(const struct histogram *histogram, double p)
{
    double samples = 0, seen = 0;
    for (size_t i = 0; i < histogram->buckets; i++)
        samples += histogram->count[i];
    if (samples <= 0)
        return NAN;
    double finite = 0;
    for (size_t i = 0; i < histogram->buckets; i++) {
        seen += histogram->count[i];
        if (!isinf(histogram->bound[i]))
            finite = histogram->bound[i];
        if (histogram->count[i] > 0 && seen >= p * samples)
            break;
    }
    return finite;
}
