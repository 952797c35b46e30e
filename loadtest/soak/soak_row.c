/* What a long sale under one strategy says: flat memory, no descriptor left open, balanced books. Pure. */
#include "loadtest/soak/soak.h"

#include "loadtest/json/members.h"

#include <math.h>

/* The smallest leak there is in each order is one chunk of malloc's, 32 bytes on 64 bits. A quarter of that is allowed … */
#define BYTES_AN_ORDER 8
/* … on top of what each thread's heap may keep for later: malloc gives back what lies above 128 KiB at its end. */
#define THREADS 32 /* workers, those of HTTP, and what renews leases and writes behind */
#define BYTES_A_THREAD (128 << 10)
/* A worker that had nothing to do in the warm-up connects later: 16 of them, to PostgreSQL twice and to five
 * of Redlock's servers. */
#define FILES_OF_WORKERS 112

int64_t soak_growth_allowed(int64_t orders)
{
    return (int64_t)THREADS * BYTES_A_THREAD + orders * BYTES_AN_ORDER;
}

bool soak_is_flat(const struct soak_counts *counts)
{
    return counts->end.memory - counts->start.memory <= soak_growth_allowed(counts->orders - counts->warm_up);
}

bool soak_keeps_files(const struct soak_counts *counts)
{
    return counts->end.files - counts->start.files <= FILES_OF_WORKERS;
}

bool soak_keeps_books(const struct soak_counts *counts)
{
    return counts->oversold == 0 && counts->negative == 0 && counts->drift == 0 && counts->mismatched == 0 &&
           !counts->stalled;
}

void soak_points_add(struct soak_points *points, const struct soak_point *point)
{
    points->stride = points->stride > 0 ? points->stride : 1;
    if (points->seen++ % points->stride != 0)
        return;
    if (points->count == SOAK_POINTS_MAX) {
        for (size_t i = 0; i < SOAK_POINTS_MAX / 2; i++)
            points->item[i] = points->item[2 * i];
        points->count = SOAK_POINTS_MAX / 2;
        points->stride *= 2;
    }
    points->item[points->count++] = *point;
}

/* To a tenth, which reads back as it was written. */
static double rounded(double value)
{
    return round(value * 10) / 10;
}

/* The figures of a row. */
struct figures {
    struct soak_counts counts;
    double seconds, orders_per_s;
    int64_t memory_start_kib, memory_end_kib, growth_allowed_kib;
    bool memory_flat, files_kept, books_balanced;
};

#define MEMBER(name, member) JSON_MEMBER(name, struct figures, member, false)

static const struct json_member MEMBERS[] = {
    MEMBER("orders", counts.orders),
    MEMBER("slices", counts.slices),
    MEMBER("seconds", seconds),
    MEMBER("orders_per_s", orders_per_s),
    MEMBER("busy", counts.busy),
    MEMBER("errors", counts.errors),
    MEMBER("memory_start_kib", memory_start_kib),
    MEMBER("memory_end_kib", memory_end_kib),
    MEMBER("growth_allowed_kib", growth_allowed_kib),
    MEMBER("files_start", counts.start.files),
    MEMBER("files_end", counts.end.files),
    MEMBER("oversold", counts.oversold),
    MEMBER("drift", counts.drift),
    MEMBER("negative", counts.negative),
    MEMBER("mismatched", counts.mismatched),
    MEMBER("memory_flat", memory_flat),
    MEMBER("files_kept", files_kept),
    MEMBER("books_balanced", books_balanced),
};

static json_t *points_json(const struct soak_points *points)
{
    json_t *list = json_array();
    for (size_t i = 0; i < points->count; i++) {
        const struct soak_point *point = &points->item[i];
        json_array_append_new(
            list,
            json_pack("{s:I, s:I, s:f, s:o}", "orders", (json_int_t)point->orders, "memory_kib",
                      (json_int_t)(point->memory >> 10), "orders_per_s", rounded(point->orders_per_s),
                      "p99_ms", point->p99_us > 0 ? json_real((double)point->p99_us / 1e3) : json_null()));
    }
    return list;
}

json_t *soak_row_new(const struct subject *subject, const struct soak_counts *counts)
{
    static const struct json_members TABLE = JSON_MEMBERS(MEMBERS);
    json_t *row = json_pack("{s:s, s:O}", "strategy", subject->name, "guarantee",
                            json_object_get(subject->cells, "guarantee"));
    enum verdict verdict = VERDICT_UNAVAILABLE;
    json_auto_t *more = counts ? NULL
                               : json_pack("{s:s, s:s?}", "verdict", verdict_name(verdict), "reason",
                                           subject->reason);
    if (counts) {
        const struct figures figures = {
            .counts = *counts,
            .seconds = rounded(counts->seconds),
            .orders_per_s = rounded(counts->seconds > 0 ? (double)counts->orders / counts->seconds : 0),
            .memory_start_kib = counts->start.memory >> 10,
            .memory_end_kib = counts->end.memory >> 10,
            .growth_allowed_kib = soak_growth_allowed(counts->orders - counts->warm_up) >> 10,
            .memory_flat = soak_is_flat(counts),
            .files_kept = soak_keeps_files(counts),
            .books_balanced = soak_keeps_books(counts),
        };
        bool kept = figures.memory_flat && figures.files_kept && figures.books_balanced;
        verdict = kept ? VERDICT_OK : VERDICT_BROKEN;
        more = members_pack(&TABLE, &figures);
    }
    if (row && counts && json_object_set_new(row, "over_orders", points_json(&counts->points)) != 0) {
        json_decref(row);
        return NULL;
    }
    if (row && more && json_object_update(row, more) == 0 &&
        json_object_set_new(row, "verdict", json_string(verdict_name(verdict))) == 0)
        return row;
    json_decref(row);
    return NULL;
}
