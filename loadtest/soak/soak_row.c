/* What a long sale under one strategy says: flat memory, no descriptor left open, balanced books. Pure. */
#include "loadtest/soak/soak.h"

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

bool soak_is_flat(const struct soak_tally *tally)
{
    return tally->end.memory - tally->start.memory <= soak_growth_allowed(tally->orders - tally->warm_up);
}

bool soak_keeps_files(const struct soak_tally *tally)
{
    return tally->end.files - tally->start.files <= FILES_OF_WORKERS;
}

bool soak_keeps_books(const struct soak_tally *tally)
{
    return tally->oversold == 0 && tally->negative == 0 && tally->drift == 0 && tally->mismatched == 0 &&
           !tally->stalled;
}

/* To a tenth, which reads back as it was written. */
static double rounded(double value)
{
    return round(value * 10) / 10;
}

json_t *soak_row_new(const struct subject *subject, const struct soak_tally *tally)
{
    json_t *row = json_pack("{s:s, s:O}", "strategy", subject->name, "guarantee",
                            json_object_get(subject->cells, "guarantee"));
    if (!row)
        return NULL;
    json_auto_t *more = NULL;
    if (!tally) {
        more = json_pack("{s:s, s:s?}", "verdict", verdict_name(VERDICT_UNAVAILABLE), "reason",
                         subject->reason);
    } else {
        bool flat = soak_is_flat(tally), files = soak_keeps_files(tally), books = soak_keeps_books(tally);
        more = json_pack(
            "{s:I, s:I, s:f, s:f, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:b, s:b, s:s}",
            "orders", (json_int_t)tally->orders, "slices", (json_int_t)tally->slices, "seconds",
            rounded(tally->seconds), "orders_per_s",
            rounded(tally->seconds > 0 ? (double)tally->orders / tally->seconds : 0), "busy",
            (json_int_t)tally->busy, "errors", (json_int_t)tally->errors, "memory_start_kib",
            (json_int_t)(tally->start.memory >> 10), "memory_end_kib", (json_int_t)(tally->end.memory >> 10),
            "growth_allowed_kib", (json_int_t)(soak_growth_allowed(tally->orders - tally->warm_up) >> 10),
            "files_start", (json_int_t)tally->start.files, "files_end", (json_int_t)tally->end.files,
            "oversold", (json_int_t)tally->oversold, "drift", (json_int_t)tally->drift, "negative",
            (json_int_t)tally->negative, "mismatched", (json_int_t)tally->mismatched, "memory_flat", flat,
            "files_kept", files, "books_balanced", books, "verdict",
            verdict_name(flat && files && books ? VERDICT_OK : VERDICT_BROKEN));
    }
    if (more && json_object_update(row, more) == 0)
        return row;
    json_decref(row);
    return NULL;
}
