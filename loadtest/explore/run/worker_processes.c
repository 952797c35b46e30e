/* Worker processes: each takes the next strategy from a pipe, explores it alone, and writes its row as a line of JSON to the
 * parent. Separate processes, because a crashed actor ends threads, and PGOPTIONS is one for a process. */
#include "loadtest/explore/run/worker_processes.h"

#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/cli/progress.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORKERS_MAX = 16, LOOK_MS = 200 /* until an interrupt reaches the workers */ };

struct worker_pool {
    const struct explore_plan *plan;
    const struct lock_config *addresses;
    const struct strategy *const *chosen;
    size_t count;
    int work; /* a pipe with one byte for each strategy that no worker has taken: its index */
};

/* ---- a worker process ----------------------------------------------------------------------------------------- */

struct report {
    FILE *out;
    size_t number;
    int percent;
};

static void report_covered(void *context, double share)
{
    struct report *report = context;
    int percent = (int)(share * 100);
    if (percent == report->percent)
        return;
    report->percent = percent;
    fprintf(report->out, "{\"at\": %zu, \"percent\": %d}\n", report->number, percent);
    fflush(report->out);
}

static bool report_row(FILE *out, size_t number, json_t *row)
{
    json_t *line = json_pack("{s:I, s:o}", "at", (json_int_t)number, "row", row);
    bool written = line && json_dumpf(line, out, JSON_COMPACT) == 0 && fputc('\n', out) != EOF &&
                   fflush(out) == 0;
    json_decref(line);
    return written;
}

/* A search failed, perhaps because PostgreSQL is unreachable; then no other search can run. */
static bool is_there(struct product_schema *schema)
{
    struct product_audit ignored;
    if (schema->lost) {
        complain(
            "an order does not finish, because a server is frozen or unreachable; check the servers and start again");
        return false;
    }
    if (product_schema_audit(schema, &ignored))
        return true;
    complain("postgresql: %s", schema->error);
    return false;
}

static int work(const struct worker_pool *pool, FILE *out)
{
    struct product_schema schema;
    uint8_t number;
    bool ok = true;
    lock_configure(pool->addresses);
    if (!product_schema_open(pool->addresses->database_url, &schema)) {
        complain("postgresql: %s", schema.error);
        return 1;
    }
    while (ok && !interrupted() && read(pool->work, &number, 1) == 1) {
        struct report report = {out, number, -1};
        json_t *row = explore_strategy(pool->plan, pool->chosen[number], &schema,
                                       pool->addresses->database_url, report_covered, &report);
        bool failed = json_object_get(row, "reason");
        ok = report_row(out, number, row) && (!failed || is_there(&schema));
    }
    product_schema_close(&schema);
    return ok ? 0 : 1;
}

struct worker {
    pid_t pid;
    int from; /* what it writes */
    FILE *lines;
};

static bool start_worker(const struct worker_pool *pool, struct worker *ret_worker)
{
    int ends[2];
    pid_t parent = getpid();
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        FILE *out = fdopen(ends[1], "w");
        (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
        _exit(!out || getppid() != parent ? 1 : work(pool, out));
    }
    close(ends[1]);
    *ret_worker = (struct worker){
        .pid = pid, .from = ends[0], .lines = pid > 0 ? fdopen(ends[0], "r") : NULL};
    if (ret_worker->lines &&
        setvbuf(ret_worker->lines, NULL, _IONBF, 0) == 0) /* otherwise poll would miss buffered lines */
        return true;
    close(ends[0]);
    return false;
}

/* ---- the parent: collects rows --------------------------------------------------------------------------------- */

/* What the strategies that are done have shown. */
struct found {
    int64_t schedules, oversold;
};

static void take_line(const char *line, struct progress *progress, const struct worker_pool *pool,
                      struct found *found, json_t **ret_rows)
{
    char detail[80];
    json_t *said = json_loads(line, 0, NULL);
    size_t at = (size_t)json_integer_value(json_object_get(said, "at"));
    json_t *row = json_object_get(said, "row");
    if (said && at < pool->count && row) {
        ret_rows[at] = json_incref(row);
        found->schedules += json_integer_value(json_object_get(row, "schedules"));
        found->oversold += json_integer_value(json_object_get(row, "oversold"));
        progress_step_done(progress);
    } else if (said && at < pool->count) {
        /* Not drawn before its details: the workers report by turns, so the line would flicker. */
        snprintf(progress->label, sizeof progress->label, "%s", pool->chosen[at]->name);
        snprintf(detail, sizeof detail, "; %" PRId64 " of %" PRId64 " oversold so far", found->oversold,
                 found->schedules);
        progress_update(progress, (double)json_integer_value(json_object_get(said, "percent")) / 100, detail);
    }
    json_decref(said);
}

/* Reads lines until every worker has closed its end. */
static void collect(struct worker *workers, size_t count, const struct worker_pool *pool, json_t **ret_rows)
{
    struct progress progress = progress_begin(pool->count);
    struct found found = {0};
    struct pollfd polled[WORKERS_MAX];
    char *line = NULL;
    size_t size = 0, open = count;
    for (size_t i = 0; i < count; i++)
        polled[i] = (struct pollfd){.fd = workers[i].from, .events = POLLIN};
    bool told = false;
    while (open > 0) {
        /* The signal may have reached only this process, so it is passed on to the workers. */
        for (size_t i = 0; interrupted() && !told && i < count; i++)
            (void)kill(workers[i].pid, SIGTERM);
        told = interrupted();
        if (poll(polled, count, LOOK_MS) < 0 && errno != EINTR)
            break;
        for (size_t i = 0; i < count; i++) {
            if (polled[i].fd < 0 || !polled[i].revents)
                continue;
            if (getline(&line, &size, workers[i].lines) > 0) {
                take_line(line, &progress, pool, &found, ret_rows);
            } else if (!ferror(workers[i].lines) || errno != EINTR) {
                polled[i].fd = -1;
                open--;
            }
        }
    }
    free(line);
    progress_wipe();
}

static bool end_worker(struct worker *worker)
{
    int status = 1;
    fclose(worker->lines);
    while (waitpid(worker->pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (WIFSIGNALED(status))
        complain("a search process has died: %s", strsignal(WTERMSIG(status)));
    return status == 0;
}

/* The pipe's buffer holds one byte for each strategy. */
static int pipe_of_work(size_t count)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return -1;
    for (size_t i = 0; i < count; i++) {
        uint8_t number = (uint8_t)i;
        if (write(ends[1], &number, 1) != 1) {
            close(ends[0]);
            ends[0] = -1;
            break;
        }
    }
    close(ends[1]);
    return ends[0];
}

bool worker_processes_run(const struct explore_plan *plan, const struct lock_config *addresses,
                          const struct strategy *const *chosen, size_t count, size_t most, json_t **ret_rows)
{
    struct worker_pool pool = {plan, addresses, chosen, count, pipe_of_work(count)};
    struct worker workers[WORKERS_MAX];
    size_t started = 0;
    bool ok = pool.work >= 0;
    while (ok && started < most && started < count && started < WORKERS_MAX)
        if ((ok = start_worker(&pool, &workers[started])))
            started++;
    if (!ok)
        complain("cannot start a process: %s", strerror(errno));
    collect(workers, started, &pool, ret_rows);
    for (size_t i = 0; i < started; i++)
        ok = end_worker(&workers[i]) && ok;
    if (pool.work >= 0)
        close(pool.work);
    for (size_t i = 0; i < count; i++)
        ok = ok && ret_rows[i];
    return ok;
}
