/* Writes lines of log to standard error, each with a single call so that lines of threads never mix. */
#include "base/log.h"

#include "base/clock.h"
#include "base/text.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

const char *const log_level_names[] = {"error", "warning", "info", "debug", NULL};

static enum log_level least = LOG_INFO;
static bool as_json;
static const char *instance_name = "";

void log_setup(enum log_level new_least, bool json, const char *instance)
{
    least = new_least;
    as_json = json;
    instance_name = instance;
}

static void write_json(const char *when, enum log_level level, char *text)
{
    json_t *message = json_string(text);
    if (!message) { /* not UTF-8, or cut inside a character */
        for (char *c = text; *c; c++)
            if (*c & 0x80)
                *c = '?';
        message = json_string(text);
    }
    json_t *line = json_pack("{s:s, s:s, s:s, s:o}", "time", when, "level", log_level_names[level],
                             "instance", instance_name, "message", message);
    char *dump = line ? json_dumps(line, JSON_COMPACT) : NULL;
    if (dump)
        fprintf(stderr, "%s\n", dump);
    free(dump);
    json_decref(line);
}

void log_line(enum log_level level, const char *format, ...)
{
    if (level > least)
        return;
    char text[1024], when[40];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    for (char *c = text; *c; c++) /* what a client or a server said must not forge a line */
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = ' ';

    struct timespec now;
    struct tm utc;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    size_t length = strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(when + length, sizeof when - length, ".%03ldZ", now.tv_nsec / 1000000);
    if (as_json)
        write_json(when, level, text);
    else
        fprintf(stderr, "%s %-7s %s\n", when, log_level_names[level], text);
}

/* Whether there is room for a line, where BURST lines may be written at once and one more each second. */
static bool opens(struct log_valve *valve, long burst)
{
    enum { LINE_US = 1000000 };
    long now_us = (long)monotonic_us(), next_us = atomic_load(&valve->next_us), begin_us;
    do {
        if (next_us - now_us > (burst - 1) * LINE_US)
            return false;
        begin_us = next_us > now_us ? next_us : now_us;
    } while (!atomic_compare_exchange_weak(&valve->next_us, &next_us, begin_us + LINE_US));
    return true;
}

size_t log_share(const char *client)
{
    return text_hash(client) % LOG_SHARES;
}

bool log_valve_opens(struct log_valve *valve)
{
    return opens(valve, 1);
}

bool log_valve_counts(struct log_valve *valve, char ret_left_out[static LOG_LEFT_OUT_SIZE])
{
    if (!opens(valve, LOG_BURST)) {
        atomic_fetch_add(&valve->left_out, 1);
        return false;
    }
    long left_out = atomic_exchange(&valve->left_out, 0);
    ret_left_out[0] = '\0';
    if (left_out > 0)
        snprintf(ret_left_out, LOG_LEFT_OUT_SIZE, "; %ld more such calls were not logged", left_out);
    return true;
}
