/* Finds a request that decides by what it has read before another request's change of it was visible: a plain read, a subquery of a locking
 * read, a locking read that found no row or whose lock has ended, a read in an older snapshot, or a read that is older than the lock. */
#include "loadtest/own/cause/stale_read.h"

#include <stdio.h>
#include <string.h>

enum stale_kind {
    STALE_NONE,
    STALE_READ,     /* without a lock */
    STALE_SNAPSHOT, /* after the COMMIT, in a transaction whose snapshot is older */
    STALE_UNLOCKED, /* a locking read, which locks no row that comes later */
    STALE_INSIDE,   /* in a subquery of a statement that waited for its lock */
    STALE_EARLIER,  /* and a later locking read returned the new values */
    STALE_RELEASED, /* a locking read, whose transaction ended before the change */
};

/* Steps: a request READS a table before another request COMMITs its CHANGE of that table. The first request WRITES as well. */
struct stale_read {
    enum stale_kind kind;
    const struct table_use *use;                 /* of READS */
    size_t reads, changes, commit, writes, lock; /* LOCK: of STALE_EARLIER */
    size_t model;    /* of STALE_SNAPSHOT: where the other request read the same */
    bool same_table; /* WRITES is a write to the table that was read */
};

/* ---- what is stale -------------------------------------------------------------------------------------------------------------- */

/* Finds the write of the reader: one that comes after the change, or that becomes visible after it. Prefers a write to the same table. */
static bool find_write(const struct run_shapes *run, struct stale_read *found)
{
    bool has_found = false;
    found->same_table = false;
    for (size_t i = 0; i < run->count && !found->same_table; i++) {
        if (!run_same_request(run, i, found->reads) || !run_wrote(run, i, NULL))
            continue;
        size_t visible = run_visible_from(run, i);
        if (visible < found->commit && (i < found->changes || found->changes < found->reads))
            continue;
        found->same_table = run_wrote(run, i, found->use->table);
        if (found->same_table || !has_found)
            found->writes = i;
        has_found = true;
    }
    return has_found;
}

/* A later read of the same request that locked rows of the table before the write. None: the number of steps. */
static size_t find_lock(const struct run_shapes *run, const struct stale_read *found)
{
    for (size_t i = found->reads + 1; i < run->count && i <= found->writes; i++)
        if (run_same_request(run, i, found->reads) && !run_found_nothing(run, i) && !run_failed(run, i) &&
            shape_use(&run->shape[i], found->use->table, ACCESS_LOCK, ACCESS_LOCK))
            return i;
    return run->count;
}

static bool waited(const struct run_shapes *run, size_t step)
{
    return run->record->steps[step].blockers != 0;
}

/* What a plain read of FOUND is, if anything: a later lock decides. */
static enum stale_kind kind_of_read(const struct run_shapes *run, struct stale_read *found)
{
    const struct run_step *steps = run->record->steps;
    bool inside = waited(run, found->reads) &&
                  shape_use(&run->shape[found->reads], NULL, ACCESS_LOCK, ACCESS_LOCK);
    if (run->shape[found->changes].set_count > 0 &&
        shape_use(&run->shape[found->changes], found->use->table, ACCESS_UPDATE, ACCESS_UPDATE) &&
        !shape_is_read_by(&run->shape[found->changes], steps[found->reads].text))
        return STALE_NONE; /* it reads other columns */
    found->lock = find_lock(run, found);
    if (found->lock == run->count)
        return inside ? STALE_INSIDE : STALE_READ;
    bool is_new = found->lock > found->commit || waited(run, found->lock);
    return is_new && strcmp(steps[found->lock].answer, steps[found->reads].answer) != 0 ? STALE_EARLIER
                                                                                        : STALE_NONE;
}

/* The steps of FOUND, up to its change, are set. */
static enum stale_kind kind_of(const struct run_shapes *run, struct stale_read *found)
{
    bool inserts = run_wrote(run, found->changes, found->use->table) &&
                   shape_use(&run->shape[found->changes], found->use->table, ACCESS_INSERT, ACCESS_INSERT);
    if (run->shape[found->reads].unknown || run_failed(run, found->reads) ||
        run_was_refused(run, found->reads) || found->reads >= found->commit || !find_write(run, found))
        return STALE_NONE;
    if (found->use->access == ACCESS_READ)
        return kind_of_read(run, found);
    return inserts && found->use->access == ACCESS_LOCK && !run->shape[found->reads].skips_locked
               ? STALE_UNLOCKED
               : STALE_NONE;
}

static bool is_better(const struct stale_read *one, const struct stale_read *other)
{
    return one->kind != STALE_NONE && (other->kind == STALE_NONE || (one->same_table && !other->same_table) ||
                                       (one->same_table == other->same_table && one->kind > other->kind));
}

static struct stale_read find(const struct run_shapes *run)
{
    struct stale_read best = {0};
    for (size_t i = 0; i < run->count; i++)
        for (size_t u = 0; u < run->shape[i].use_count; u++)
            for (size_t j = 0; j < run->count; j++) {
                struct stale_read next = {.use = &run->shape[i].uses[u], .reads = i, .changes = j};
                if (run_same_request(run, i, j) || !run_wrote(run, j, next.use->table))
                    continue;
                next.commit = run_visible_from(run, j);
                next.kind = kind_of(run, &next);
                if (is_better(&next, &best))
                    best = next;
            }
    return best;
}

/* ---- an older snapshot ------------------------------------------------------------------------------------------------------------ */

/* The first statement of the transaction of STEP. */
static size_t transaction_begin(const struct run_shapes *run, size_t step)
{
    size_t begin = step;
    bool failed;
    for (size_t i = step; i-- > 0;) {
        if (!run_same_request(run, i, step))
            continue;
        if (run_ends_transaction(run, i, &failed))
            break;
        begin = i;
    }
    return begin;
}

/* The other request sent the same read before its change, and got the same answer. */
static bool find_model(const struct run_shapes *run, struct stale_read *found)
{
    const struct run_step *steps = run->record->steps;
    for (size_t i = 0; i < found->changes; i++) {
        bool same = run_same_request(run, i, found->changes) &&
                    strcmp(steps[i].text, steps[found->reads].text) == 0 &&
                    strcmp(steps[i].answer, steps[found->reads].answer) == 0;
        if (same)
            found->model = i;
        if (same)
            return true;
    }
    return false;
}

/* READS comes after the COMMIT, and shows nothing of the change. */
static bool is_old_snapshot(const struct run_shapes *run, struct stale_read *found)
{
    const struct statement_shape *change = &run->shape[found->changes];
    if (found->use->access != ACCESS_READ || found->reads <= found->commit ||
        run_was_refused(run, found->reads) || run->shape[found->reads].unknown ||
        transaction_begin(run, found->reads) >= found->commit || !find_model(run, found) ||
        !shape_is_read_by(change, run->record->steps[found->reads].text))
        return false;
    found->commit = found->reads; /* for find_write: what comes after the read */
    return find_write(run, found) && found->writes > found->reads;
}

static struct stale_read find_old_snapshot(const struct run_shapes *run)
{
    for (size_t i = 0; i < run->count; i++)
        for (size_t u = 0; u < run->shape[i].use_count; u++)
            for (size_t j = 0; j < i; j++) {
                struct stale_read next = {.kind = STALE_SNAPSHOT,
                                          .use = &run->shape[i].uses[u],
                                          .reads = i,
                                          .changes = j,
                                          .commit = run_visible_from(run, j)};
                size_t commit = next.commit;
                if (run_same_request(run, i, j) || !run_wrote(run, j, next.use->table) ||
                    !is_old_snapshot(run, &next))
                    continue;
                next.commit = commit;
                return next;
            }
    return (struct stale_read){0};
}

/* ---- a lock that has ended ---------------------------------------------------------------------------------------------------------- */

/* READS locked rows in a transaction that wrote nothing and ended before the change, and the request then wrote without another lock and without a
 * condition. */
static bool is_released(const struct run_shapes *run, struct stale_read *found)
{
    bool failed;
    if (found->use->access != ACCESS_LOCK || run_found_nothing(run, found->reads) ||
        found->lock >= run->count || !run_ends_transaction(run, found->lock, &failed) ||
        run->shape[found->reads].unknown || run_failed(run, found->reads) ||
        run->shape[found->reads].skips_locked || run_was_refused(run, found->reads) ||
        found->lock >= found->changes || !find_write(run, found) || !found->same_table ||
        found->writes <= found->changes || run->shape[found->writes].conditional ||
        find_lock(run, found) < run->count)
        return false;
    for (size_t i = transaction_begin(run, found->reads); i <= found->lock; i++)
        if (run_same_request(run, i, found->reads) && run_wrote(run, i, NULL))
            return false;
    return true;
}

static struct stale_read find_released(const struct run_shapes *run)
{
    for (size_t i = 0; i < run->count; i++)
        for (size_t u = 0; u < run->shape[i].use_count; u++)
            for (size_t j = i; j < run->count; j++) {
                struct stale_read next = {.kind = STALE_RELEASED,
                                          .use = &run->shape[i].uses[u],
                                          .reads = i,
                                          .changes = j,
                                          .commit = run_visible_from(run, j),
                                          .lock = run_visible_from(run, i)};
                if (!run_same_request(run, i, j) && run_wrote(run, j, next.use->table) &&
                    is_released(run, &next))
                    return next;
            }
    return (struct stale_read){0};
}

/* ---- SKIP LOCKED ------------------------------------------------------------------------------------------------------------------ */

/* READS found no row, since CHANGES had locked it, and the request continued without the lock. */
static bool find_skipped(const struct run_shapes *run, struct stale_read *found)
{
    for (size_t i = 0; i < run->count; i++) {
        if (!run->shape[i].skips_locked || !run_found_nothing(run, i) || run_was_refused(run, i))
            continue;
        found->use = shape_use(&run->shape[i], NULL, ACCESS_LOCK, ACCESS_LOCK);
        for (size_t j = 0; j < i && found->use; j++) {
            if (run_same_request(run, i, j) || run_visible_from(run, j) <= i ||
                !shape_use(&run->shape[j], found->use->table, ACCESS_LOCK, ACCESS_DELETE))
                continue;
            for (size_t w = i + 1; w < run->count; w++) {
                found->reads = i;
                found->changes = j;
                found->writes = w;
                if (run_same_request(run, w, i) && run_wrote(run, w, NULL))
                    return true;
            }
        }
    }
    return false;
}

/* ---- the text ---------------------------------------------------------------------------------------------------------------------- */

/* What the reader did with the old value. */
static void say_write(const struct run_shapes *run, const struct stale_read *found, char other,
                      char ret_text[static 160])
{
    const struct statement_shape *shape = &run->shape[found->writes];
    bool updates = found->same_table &&
                   shape_use(shape, found->use->table, ACCESS_UPDATE, ACCESS_UPDATE) != NULL;
    size_t number = found->writes + 1;
    if (found->writes == found->reads)
        snprintf(ret_text, 160, "wrote in the same statement");
    else if (found->writes < found->reads)
        snprintf(ret_text, 160, "committed its own change (%zu) without seeing the change of %c", number,
                 other);
    else if (updates && !shape->relative && shape_is_read_by(shape, run->record->steps[found->reads].text))
        snprintf(ret_text, 160, "then wrote a value that it computed from the old one (%zu)", number);
    else if (updates && shape->relative && !shape->conditional)
        snprintf(ret_text, 160, "then changed it without a condition (%zu)", number);
    else if (run_was_sold(run, found->reads) && !updates)
        snprintf(ret_text, 160, "then sold because of the old value (%zu)", number);
    else
        snprintf(ret_text, 160, "then wrote (%zu)", number);
}

/* The UPDATE of the reader has no condition on what it sets, so it could have one. */
static bool lacks_condition(const struct run_shapes *run, const struct stale_read *found)
{
    bool lacks = false;
    for (size_t i = 0; i < run->count; i++) {
        const struct statement_shape *shape = &run->shape[i];
        if (!run_same_request(run, i, found->reads) ||
            !shape_use(shape, found->use->table, ACCESS_UPDATE, ACCESS_UPDATE))
            continue;
        if (shape->conditional || shape->unknown)
            return false;
        lacks = true;
    }
    return lacks;
}

static const char *advice(const struct run_shapes *run, const struct stale_read *found)
{
    bool comes_later = shape_use(&run->shape[found->changes], found->use->table, ACCESS_INSERT,
                                 ACCESS_INSERT) != NULL;
    if (comes_later || run->shape[found->reads].aggregates || found->writes == found->reads)
        return "Before the read, lock a row that all these requests share, or use SERIALIZABLE.";
    return lacks_condition(run, found)
               ? "Read with SELECT … FOR UPDATE, or check the stock in the UPDATE itself."
               : "Read with SELECT … FOR UPDATE.";
}

static void say_read(const struct run_shapes *run, const struct stale_read *found,
                     char ret_text[static CAUSE_TEXT])
{
    char other = run_name(run, found->changes), change[80], write[160];
    if (found->reads < found->changes)
        snprintf(change, sizeof change, "%c changed it (%zu)", other, found->changes + 1);
    else
        snprintf(change, sizeof change, "the change of %c (%zu) was committed (%zu)", other,
                 found->changes + 1, found->commit + 1);
    say_write(run, found, other, write);
    snprintf(ret_text, CAUSE_TEXT, "%c read %s (statement %zu) before %s, and %s. %s",
             run_name(run, found->reads), found->use->table, found->reads + 1, change, write,
             advice(run, found));
}

static void say_unlocked(const struct run_shapes *run, const struct stale_read *found,
                         char ret_text[static CAUSE_TEXT])
{
    snprintf(
        ret_text, CAUSE_TEXT,
        "The locking read of %c (statement %zu) %s, and the row that %c inserted into %s (%zu) was not "
        "committed before it (%zu). %c wrote as well (%zu). Before the check, lock a row that is always there and that these requests share, "
        "or let a UNIQUE or EXCLUDE constraint decide.",
        run_name(run, found->reads), found->reads + 1,
        run_found_nothing(run, found->reads) ? "found no row, so it locked nothing"
                                             : "locked only the rows that it found",
        run_name(run, found->changes), found->use->table, found->changes + 1, found->commit + 1,
        run_name(run, found->reads), found->writes + 1);
}

static void say_inside(const struct run_shapes *run, const struct stale_read *found,
                       char ret_text[static CAUSE_TEXT])
{
    snprintf(
        ret_text, CAUSE_TEXT,
        "Statement %zu of %c waited for its lock on %s, but what it reads of %s is from before it waited: without the change of %c "
        "(%zu), which was committed (%zu). So the subquery is older than the lock. Lock the row in a statement alone, and then read %s.",
        found->reads + 1, run_name(run, found->reads),
        shape_use(&run->shape[found->reads], NULL, ACCESS_LOCK, ACCESS_LOCK)->table, found->use->table,
        run_name(run, found->changes), found->changes + 1, found->commit + 1, found->use->table);
}

static void say_earlier(const struct run_shapes *run, const struct stale_read *found,
                        char ret_text[static CAUSE_TEXT])
{
    snprintf(
        ret_text, CAUSE_TEXT,
        "%c read %s (statement %zu), %c changed it (%zu), and the locking read of %c (%zu) returned the new values. %c wrote (%zu) as "
        "if it had only the old ones. Decide by the values of the locking read. An object-relational mapper may return the object that it "
        "read first: refresh it with the lock, or lock with the first read.",
        run_name(run, found->reads), found->use->table, found->reads + 1, run_name(run, found->changes),
        found->changes + 1, run_name(run, found->reads), found->lock + 1, run_name(run, found->reads),
        found->writes + 1);
}

static void say_snapshot(const struct run_shapes *run, const struct stale_read *found,
                         char ret_text[static CAUSE_TEXT])
{
    snprintf(
        ret_text, CAUSE_TEXT,
        "%c read %s (statement %zu) after the COMMIT of %c (%zu), and got the same as %c before its change (%zu). So the snapshot "
        "of %c is older than the COMMIT: at REPEATABLE READ, the first statement takes it (%zu), also if that waits for a lock. "
        "Use READ COMMITTED behind the lock, or let SERIALIZABLE decide.",
        run_name(run, found->reads), found->use->table, found->reads + 1, run_name(run, found->changes),
        found->commit + 1, run_name(run, found->changes), found->model + 1, run_name(run, found->reads),
        transaction_begin(run, found->reads) + 1);
}

static void say_skipped(const struct run_shapes *run, const struct stale_read *found,
                        char ret_text[static CAUSE_TEXT])
{
    snprintf(
        ret_text, CAUSE_TEXT,
        "Statement %zu of %c skips locked rows (SKIP LOCKED): it found none in %s, because %c had locked what there was (%zu). %c continued "
        "without the lock, and wrote (%zu). No row can mean here that the row is in use: wait for it, or try again.",
        found->reads + 1, run_name(run, found->reads), found->use->table, run_name(run, found->changes),
        found->changes + 1, run_name(run, found->reads), found->writes + 1);
}

static void say_released(const struct run_shapes *run, const struct stale_read *found,
                         char ret_text[static CAUSE_TEXT])
{
    char reader = run_name(run, found->reads), ended[60];
    if (found->lock == found->reads)
        snprintf(ended, sizeof ended, "outside a transaction, so the lock ended with it");
    else
        snprintf(ended, sizeof ended, "and its transaction ended (%zu)", found->lock + 1);
    snprintf(
        ret_text, CAUSE_TEXT,
        "Statement %zu of %c locked rows of %s %s. Then %c changed the table (%zu), and %c wrote to it by what it had read before (%zu). "
        "Put the locking read and the write into one transaction.",
        found->reads + 1, reader, found->use->table, ended, run_name(run, found->changes), found->changes + 1,
        reader, found->writes + 1);
}

bool say_stale_read(const struct run_shapes *run, char ret_text[static CAUSE_TEXT])
{
    struct stale_read found = {0};
    if (find_skipped(run, &found)) {
        say_skipped(run, &found, ret_text);
        return true;
    }
    found = find(run);
    if (found.kind == STALE_NONE)
        found = find_old_snapshot(run);
    if (found.kind == STALE_NONE)
        found = find_released(run);
    switch (found.kind) {
    case STALE_READ: say_read(run, &found, ret_text); break;
    case STALE_SNAPSHOT: say_snapshot(run, &found, ret_text); break;
    case STALE_UNLOCKED: say_unlocked(run, &found, ret_text); break;
    case STALE_INSIDE: say_inside(run, &found, ret_text); break;
    case STALE_EARLIER: say_earlier(run, &found, ret_text); break;
    case STALE_RELEASED: say_released(run, &found, ret_text); break;
    case STALE_NONE: return false;
    }
    return true;
}
