/* One run of the load test as a child process: its command line, its output while it runs, and its end. */
#include "base/clock.h"
#include "base/json.h"
#include "service/config/config.h"
#include "service/runs/child.h"
#include "service/runs/lab_program.h"
#include "service/runs/runs_impl.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    LOOK_MS = 50,               /* between two looks whether the run was cancelled */
    GRACE_MS = 20000,           /* for the load test to end after SIGTERM */
    TEXT_MAX = 4 * 1024 * 1024, /* bytes that are kept from one pipe: the result, or one line */
    WORDS_MAX = 40,
    WORD_SIZE = 32,
};

/* ---- the command line ---------------------------------------------------------------------------------- */

/* Where this service is reached from this machine. */
static void own_url(const struct config *config, uint16_t port, char *ret_url, size_t size)
{
    char host[INET6_ADDRSTRLEN] = "";
    if (config->address.ss_family == AF_INET6) {
        const struct in6_addr *address = &((const struct sockaddr_in6 *)&config->address)->sin6_addr;
        bool any = IN6_IS_ADDR_UNSPECIFIED(address);
        snprintf(ret_url, size, "http://[%s]:%u",
                 any ? "::1" : inet_ntop(AF_INET6, address, host, sizeof host), (unsigned)port);
    } else {
        const struct in_addr *address = &((const struct sockaddr_in *)&config->address)->sin_addr;
        bool any = address->s_addr == htonl(INADDR_ANY);
        snprintf(ret_url, size, "http://%s:%u",
                 any ? "127.0.0.1" : inet_ntop(AF_INET, address, host, sizeof host), (unsigned)port);
    }
}

/* The names with commas between, to be freed. */
static char *join(const json_t *names)
{
    char *text = NULL;
    size_t size = 0, i;
    json_t *name;
    FILE *to = open_memstream(&text, &size);
    if (!to)
        return NULL;
    json_array_foreach(names, i, name)
        fprintf(to, "%s%s", i ? "," : "", json_string_value(name));
    if (fclose(to) == 0)
        return text;
    free(text);
    return NULL;
}

static bool start(const struct runs *runs, const struct run *run, struct run_child *ret_child)
{
    const struct run_order *order = &run->order;
    const struct {
        const char *option;
        int64_t value;
        const char *unit;
    } numbers[] = {
        {"--product", order->product_id, ""},      {"--instances", order->instances, ""},
        {"--connections", order->connections, ""}, {"--stock", order->stock, ""},
        {"--quantity", order->quantity, ""},       {"--requests", order->requests, ""},
        {"--duration", order->duration_ms, "ms"},  {"--think-ms", order->think_ms, ""},
    };
    enum { NUMBERS = sizeof numbers / sizeof numbers[0] };
    char program[PATH_MAX], url[INET6_ADDRSTRLEN + 24], values[NUMBERS][WORD_SIZE];
    own_url(runs->config, run->port, url, sizeof url);
    char *strategies = join(order->strategies);
    size_t ours = 0;
    char **env = lab_environment(runs->config, &ours);
    /* The sale comes last, so that its books and its traces are there to be looked at when the run is over. */
    const char *words[WORDS_MAX] = {program,        "compare",
                                    "--url",        url,
                                    "--servers",    "environment",
                                    "--phases",     "throughput,sell-out",
                                    "--progress",   "json",
                                    "--format",     "json",
                                    "--switch",     order->own_settings ? "product" : "service",
                                    "--strategies", strategies};
    size_t count = 16;
    for (size_t i = 0; i < NUMBERS; i++) {
        snprintf(values[i], WORD_SIZE, "%" PRId64 "%s", numbers[i].value, numbers[i].unit);
        words[count++] = numbers[i].option;
        words[count++] = values[i];
    }
    bool started = lab_program(program, sizeof program) && strategies && env &&
                   run_child_start(words, (const char *const *)env, false, ret_child);
    free(strategies);
    lab_environment_free(env, ours);
    return started;
}

/* ---- its output ---------------------------------------------------------------------------------------- */

/* Text that grows as it comes in. */
struct text {
    char *bytes; /* LENGTH of them and a NUL, or NULL */
    size_t length, room;
};

/* Reads what is there. False: the pipe has ended, or brought more than TEXT_MAX bytes. */
static bool take_in(struct text *text, int fd)
{
    char bytes[16384];
    ssize_t got = read(fd, bytes, sizeof bytes);
    if (got <= 0)
        return got < 0 && (errno == EAGAIN || errno == EINTR);
    if (text->length + (size_t)got + 1 > text->room) {
        size_t room = (text->length + (size_t)got + 1) * 2;
        char *more = room <= TEXT_MAX ? realloc(text->bytes, room) : NULL;
        if (!more)
            return false;
        text->bytes = more;
        text->room = room;
    }
    memcpy(text->bytes + text->length, bytes, (size_t)got);
    text->length += (size_t)got;
    text->bytes[text->length] = '\0';
    return true;
}

/* A line that is no event is an error message, for people. */
static void hear_line(struct runs *runs, struct run *run, const char *line)
{
    json_error_t error;
    json_t *event = json_read(line, strlen(line), 0, &error);
    json_t *load = json_object_get(event, "load"), *row = json_object_get(event, "row");
    json_t *traces = json_object_get(event, "traces");
    json_t *wrapped = traces ? json_pack("{s:O}", "instances", traces) : NULL;
    char *text = wrapped ? json_dumps(wrapped, JSON_COMPACT) : NULL;
    json_decref(wrapped);

    pthread_mutex_lock(&runs->mutex);
    if (load) {
        json_decref(run->load);
        run->load = json_incref(load);
    } else if (row) {
        json_object_del(row, "cells"); /* which GET /strategies has as well */
        (void)json_array_append(run->rows, row);
    } else if (text) {
        free(run->traces);
        run->traces = text;
        text = NULL;
    } else if (!event && line[0] && json_error_code(&error) != json_error_out_of_memory) {
        static const char PREFIX[] = "loadtest: ";
        bool known = strncmp(line, PREFIX, sizeof PREFIX - 1) == 0;
        snprintf(run->error, sizeof run->error, "%s", line + (known ? sizeof PREFIX - 1 : 0));
    }
    run_changed(run);
    pthread_mutex_unlock(&runs->mutex);
    free(text);
    json_decref(event);
}

/* Handles the lines that are complete, and keeps the rest. */
static void hear_lines(struct runs *runs, struct run *run, struct text *text)
{
    char *from = text->bytes, *end;
    while (from && (end = strchr(from, '\n')) != NULL) {
        *end = '\0';
        hear_line(runs, run, from);
        from = end + 1;
    }
    if (!from)
        return;
    text->length -= (size_t)(from - text->bytes);
    memmove(text->bytes, from, text->length + 1);
}

/* ---- from its start to its end ------------------------------------------------------------------------- */

static bool is_cancelled(struct runs *runs)
{
    pthread_mutex_lock(&runs->mutex);
    bool cancelled = runs->cancelled;
    pthread_mutex_unlock(&runs->mutex);
    return cancelled;
}

static void set_error(struct runs *runs, struct run *run, const char *error)
{
    pthread_mutex_lock(&runs->mutex);
    snprintf(run->error, sizeof run->error, "%s", error);
    pthread_mutex_unlock(&runs->mutex);
}

/* Reads until both pipes are closed, or the child does not end within GRACE_MS after SIGTERM. Returns the time by which the
 * child must have ended. */
static int64_t attend(struct runs *runs, struct run *run, const struct run_child *child, struct text *out)
{
    struct text err = {0};
    struct pollfd pipes[2] = {{.fd = child->out, .events = POLLIN}, {.fd = child->err, .events = POLLIN}};
    int64_t longest_us = monotonic_us() + run->order.longest_ms * 1000, told_us = 0;
    while (pipes[0].fd >= 0 || pipes[1].fd >= 0) {
        (void)poll(pipes, 2, LOOK_MS);
        if (pipes[0].revents && !take_in(out, child->out))
            pipes[0].fd = -1;
        if (pipes[1].revents && !take_in(&err, child->err))
            pipes[1].fd = -1;
        hear_lines(runs, run, &err);
        int64_t now_us = monotonic_us();
        bool too_long = now_us > longest_us;
        if (told_us == 0 && (too_long || is_cancelled(runs))) {
            (void)kill(child->pid, SIGTERM); /* it ends what it has started, and then itself */
            told_us = now_us;
            if (too_long)
                set_error(runs, run,
                          "The run took longer than it may and was ended. Ask for fewer strategies.");
        }
        if (told_us != 0 && now_us - told_us > (int64_t)GRACE_MS * 1000)
            break;
    }
    free(err.bytes);
    return (told_us ? told_us : monotonic_us()) + (int64_t)GRACE_MS * 1000;
}

/* Sets the reason why there is no result; with the mutex held. */
static void note_end(struct run *run, int status)
{
    if (WIFEXITED(status))
        snprintf(
            run->error, sizeof run->error,
            "The load test failed with exit status %d and gave no reason. Try again, or read the service's log.",
            WEXITSTATUS(status));
    else
        snprintf(run->error, sizeof run->error, "The load test was killed by signal %d (%s). Try again.",
                 WTERMSIG(status), strsignal(WTERMSIG(status)));
}

static bool nothing_was_measured(const struct run *run)
{
    size_t i;
    json_t *row;
    json_array_foreach(run->rows, i, row) {
        const char *verdict = json_string_value(json_object_get(row, "verdict"));
        if (!verdict || strcmp(verdict, "unavailable") != 0)
            return false;
    }
    return true;
}

/* No strategy of the run could be loaded, because their servers do not answer; with the mutex held. */
static void note_unavailable(struct run *run)
{
    const json_t *row = json_array_get(run->rows, 0);
    const char *name = json_string_value(json_object_get(row, "strategy"));
    const char *reason = json_string_value(json_object_get(row, "reason"));
    snprintf(run->error, sizeof run->error,
             "%s could not be loaded: %s. Start that server, or choose a strategy that does not need it.",
             name ? name : "The strategy", reason ? reason : "its server does not answer");
    json_decref(run->document);
    run->document = NULL;
}

void run_load_test(struct runs *runs, struct run *run)
{
    struct run_child child;
    if (!start(runs, run, &child)) {
        set_error(runs, run, "the load test cannot be started");
        return;
    }
    struct text out = {0};
    int64_t deadline_us = attend(runs, run, &child, &out);
    int status = run_child_end(&child, deadline_us);
    /* The load test also writes a result if a strategy broke its guarantee (1) or could not be measured (3). */
    json_error_t error;
    json_t *document = WIFEXITED(status) && out.bytes ? json_read(out.bytes, out.length, 0, &error) : NULL;
    free(out.bytes);
    pthread_mutex_lock(&runs->mutex);
    json_object_del(document, "rows"); /* which are there already */
    run->document = document;
    if (!document && !run->error[0])
        note_end(run, status);
    if (document && nothing_was_measured(run))
        note_unavailable(run);
    pthread_mutex_unlock(&runs->mutex);
}
