/* Runs wrk with order.lua for a number of orders or a duration, and counts the answers of each kind. */
#include "loadtest/load/wrk.h"

#include "base/clock.h"
#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/cli/wait_note.h"
#include "loadtest/json/members.h"
#include "loadtest/testbed/paths.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define THREADS_MAX INSTANCES_MAX
#define POLL_MS 50
#define END_MS 60000 /* for wrk to exit after SIGTERM */
#define AGAIN_MS 100 /* it may sleep through a signal, so it is told again */
#define SLOW_TIMEOUT "10s"
#define WRK_DURATION "24h" /* the end comes from here, never from wrk */
#define LINE_BYTES 4096

/* ---- the result ---------------------------------------------------------------------------------------- */

/* The members of order.lua's result line. */
struct wrk_result {
    struct load_result load;
    int64_t answered, elapsed_us, window_us;
};

#define NUMBER(key, member) JSON_MEMBER(key, struct wrk_result, member, false)
#define ANSWERS(name) NUMBER(#name, load.answers.name)
#define LOAD(name) NUMBER(#name, load.name)

static const struct json_member WRK_MEMBERS[] = {NUMBER("sent", load.answers.requests),
                                                 NUMBER("answered", answered),
                                                 NUMBER("elapsed_us", elapsed_us),
                                                 NUMBER("window_us", window_us),
                                                 ANSWERS(created),
                                                 ANSWERS(sold_out),
                                                 ANSWERS(lock_busy),
                                                 ANSWERS(conflict),
                                                 ANSWERS(overloaded),
                                                 ANSWERS(lock_lost),
                                                 ANSWERS(unavailable),
                                                 ANSWERS(unknown),
                                                 ANSWERS(other),
                                                 ANSWERS(created_late),
                                                 LOAD(window_created),
                                                 LOAD(socket_connect),
                                                 LOAD(socket_read),
                                                 LOAD(socket_write),
                                                 LOAD(slow)};

const double load_percentiles[LOAD_PERCENTILES] = {0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999};

static void read_series(const json_t *json, struct load_result *result)
{
    const json_t *sold = json_object_get(json, "sold_in_slot"),
                 *left = json_object_get(json, "left_after_slot");
    struct sale_series sale = {.slot_us = json_integer_value(json_object_get(json, "slot_us"))};
    int64_t sum = 0;
    for (; sale.count < json_array_size(sold) && sale.count < SALE_SLOTS_MAX; sale.count++) {
        const json_t *stock = json_array_get(left, sale.count);
        sum += json_integer_value(json_array_get(sold, sale.count));
        sale.sold[sale.count] = sum;
        sale.left[sale.count] = json_is_integer(stock) ? json_integer_value(stock) : SALE_UNSEEN;
    }
    result->sale = sale;
    for (size_t i = 0; i < LOAD_PERCENTILES; i++)
        result->latency_us[i] = json_integer_value(json_array_get(json_object_get(json, "latency_us"), i));
}

bool load_result_parse(const char *text, struct load_result *ret_result)
{
    static const struct json_members MEMBERS = JSON_MEMBERS(WRK_MEMBERS);
    struct wrk_result r = {0};
    json_auto_t *json = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    if (!json || members_unpack(&MEMBERS, json, &r))
        return false;
    struct answers *answers = &r.load.answers;
    answers->busy = answers->lock_busy + answers->conflict + answers->overloaded + answers->lock_lost;
    answers->unanswered = answers->requests > r.answered ? answers->requests - r.answered : 0;
    answers->errors = answers->unavailable + answers->unknown + answers->unanswered + answers->other;
    r.load.elapsed_s = (double)r.elapsed_us / 1e6;
    r.load.window_s = (double)r.window_us / 1e6;
    read_series(json, &r.load);
    *ret_result = r.load;
    return true;
}

/* ---- what wrk says while it runs ----------------------------------------------------------------------- */

struct listener {
    const struct load *load;
    size_t threads;
    int64_t answers[THREADS_MAX], created[THREADS_MAX];
    bool parked[THREADS_MAX];
    int64_t started_us, heard_us; /* when an answer was last heard of */
    char line[LINE_BYTES];
    size_t length;
    bool has_result;
    struct load_result result;
};

static bool all_parked(const struct listener *listener)
{
    for (size_t i = 0; i < listener->threads; i++)
        if (!listener->parked[i])
            return false;
    return true;
}

static void hear_line(struct listener *listener)
{
    size_t thread;
    int64_t answers, created;
    static const char RESULT[] = "oversell result ";
    if (sscanf(listener->line, "oversell progress %zu %" SCNd64 " %" SCNd64, &thread, &answers, &created) ==
        3) {
        if (thread >= listener->threads || answers <= listener->answers[thread])
            return;
        listener->answers[thread] = answers;
        listener->created[thread] = created;
        listener->heard_us = monotonic_us();
    } else if (sscanf(listener->line, "oversell parked %zu", &thread) == 1) {
        if (thread < listener->threads)
            listener->parked[thread] = true;
    } else if (strncmp(listener->line, RESULT, sizeof RESULT - 1) == 0) {
        listener->has_result = load_result_parse(listener->line + sizeof RESULT - 1, &listener->result);
    }
}

/* Takes in what wrk has written; false once it has closed its end. A line too long to be ours is cut. */
static bool hear(struct listener *listener, int fd)
{
    char bytes[4096];
    ssize_t got = read(fd, bytes, sizeof bytes);
    if (got < 0)
        return errno == EAGAIN || errno == EINTR;
    for (ssize_t i = 0; i < got; i++) {
        if (bytes[i] == '\n') {
            listener->line[listener->length] = 0;
            hear_line(listener);
            listener->length = 0;
        } else if (listener->length < LINE_BYTES - 1) {
            listener->line[listener->length++] = bytes[i];
        }
    }
    return got > 0;
}

static void tell_progress(const struct listener *listener)
{
    int64_t answers = 0, created = 0;
    for (size_t i = 0; i < listener->threads; i++) {
        answers += listener->answers[i];
        created += listener->created[i];
    }
    if (listener->load->progress)
        listener->load->progress(listener->load->context, answers, created,
                                 (double)(monotonic_us() - listener->started_us) / 1e6);
}

/* ---- running it ---------------------------------------------------------------------------------------- */

int64_t load_connections(const struct load *load)
{
    int64_t threads = (int64_t)load->testbed->count;
    return (load->connections + threads - 1) / threads * threads;
}

#define ENV_MAX 12

/* Releases the words of an environment that set_env filled. */
static void free_env(char **env)
{
    for (size_t i = 0; i < ENV_MAX; i++)
        free(env[i]);
}

/* "http://host:port" of every service as "host port,host port". */
static bool set_targets(char **env, size_t i, const struct testbed *testbed)
{
    size_t size;
    FILE *out = open_memstream(&env[i], &size);
    if (!out)
        return false;
    fputs("LOAD_TARGETS=", out);
    for (size_t service = 0; service < testbed->count; service++) {
        const char *host = service_client_url(testbed->clients[service]) + strlen("http://");
        const char *colon = strrchr(host, ':');
        int length = (int)(colon - host);
        if (*host == '[') {
            host++;
            length -= 2;
        }
        fprintf(out, "%s%.*s %s", service ? "," : "", length, host, colon + 1);
    }
    return fclose(out) == 0;
}

static bool set_env(char **env, const struct load *load)
{
    int64_t threads = (int64_t)load->testbed->count;
    const struct {
        const char *name;
        int64_t value;
    } NUMBERS[] = {
        {"THREADS", threads},         {"CONNECTIONS", load_connections(load) / threads},
        {"PRODUCT", load->product},   {"QUANTITY", load->quantity},
        {"REQUESTS", load->requests}, {"WINDOW_MS", load->window_ms},
        {"SETTLED", load->settled},   {"STUCK_MS", load->stuck_ms},
    };
    size_t count = sizeof NUMBERS / sizeof NUMBERS[0];
    for (size_t i = 0; i < count; i++)
        if (asprintf(&env[i], "LOAD_%s=%" PRId64, NUMBERS[i].name, NUMBERS[i].value) < 0) {
            env[i] = NULL;
            return false;
        }
    return set_targets(env, count, load->testbed);
}

/* Listens until every answer is in, then ends wrk and listens for its result. */
static bool attend(struct listener *listener, struct child *wrk)
{
    const struct load *load = listener->load;
    int64_t heard_us = 0;
    struct wait_note note = {0};
    int64_t ended_us = 0, told_us = 0; /* when all was in; when wrk was last told to end */
    while (!interrupted()) {
        struct pollfd wait = {.fd = wrk->out, .events = POLLIN};
        if (poll(&wait, 1, POLL_MS) > 0 && !hear(listener, wrk->out))
            return true;
        int64_t now = monotonic_us();
        tell_progress(listener);
        if (ended_us == 0 && all_parked(listener))
            ended_us = now;
        if (ended_us != 0) {
            if (now - told_us > (int64_t)AGAIN_MS * 1000) {
                child_signal(wrk, SIGINT);
                told_us = now;
            }
            if (now - ended_us > (int64_t)END_MS * 1000) {
                complain("wrk did not exit after SIGINT");
                return false;
            }
        } else if (heard_us != listener->heard_us) {
            heard_us = listener->heard_us;
            note = (struct wait_note){.since_us = heard_us};
        } else if (now - listener->heard_us > load->patience_ms * 1000) {
            char patience[32];
            complain("the service answered no order for %s: see its log, or use a longer --patience",
                     duration_text(load->patience_ms, patience));
            return false;
        }
        char patience[32];
        if (ended_us == 0)
            wait_note(&note, "an answer to an order%s%s: none has come for %d s (--patience %s)",
                      load->what ? " of " : "", load->what ? load->what : "", WAIT_NOTE_MS / 1000,
                      duration_text(load->patience_ms, patience));
        if (!testbed_alive(load->testbed))
            return false;
    }
    return false;
}

bool load_run(const struct load *load, struct load_result *ret_result)
{
    char script[PATH_MAX], threads[24], connections[24];
    char *env[ENV_MAX] = {NULL};
    if (!path_of(PATH_ORDER_LUA, script))
        return false;
    snprintf(threads, sizeof threads, "%zu", load->testbed->count);
    snprintf(connections, sizeof connections, "%" PRId64, load_connections(load));

    struct listener listener = {.load = load, .threads = load->testbed->count};
    struct child wrk;
    struct child_plan plan = {
        .argv = (const char *[]){"wrk", "--threads", threads, "--connections", connections, "--duration",
                                 WRK_DURATION, "--timeout", SLOW_TIMEOUT, "--script", script,
                                 service_client_url(load->testbed->clients[0]), NULL},
        .env = (const char *const *)env,
        .pipe_out = true,
        .death_signal = SIGKILL,
    };
    bool started = set_env(env, load) && child_start(&plan, &wrk);
    int error = errno;
    free_env(env);
    if (!started) {
        complain("cannot start wrk: %s", strerror(error));
        return false;
    }

    listener.started_us = listener.heard_us = monotonic_us();
    bool attended = attend(&listener, &wrk);
    bool ended = attended && child_wait(&wrk, END_MS, true);
    child_stop(&wrk, 0);
    if (attended && !interrupted() && (!ended || wrk.status != 0 || !listener.has_result)) {
        char status[64];
        complain("wrk printed no result: %s", child_status_text(&wrk, status));
        return false;
    }
    if (!attended || interrupted())
        return false;
    *ret_result = listener.result;
    return true;
}
