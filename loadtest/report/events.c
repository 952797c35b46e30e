/* What a run is doing, as a JSON object a line on stderr, for a program that watches it. */
#include "loadtest/report/events.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AGAIN_US 100000
#define TRACES_WANTED 300

static bool wanted; /* there is one stderr */

void events_begin(void)
{
    wanted = true;
}

/* Writes {NAME: VALUE}; VALUE is stolen. In one write, since others write lines there as well. */
static void write_event(const char *name, json_t *value)
{
    json_auto_t *event = json_pack("{s:o}", name, value);
    char *text = event ? json_dumps(event, JSON_COMPACT | JSON_REAL_PRECISION(4)) : NULL;
    if (text)
        fprintf(stderr, "%s\n", text);
    free(text);
}

void events_load(const struct event_load *load)
{
    static struct event_load last;
    static int64_t written_us;
    bool same = last.strategy == load->strategy && last.phase == load->phase &&
                last.think_ms == load->think_ms;
    if (!wanted || (same && monotonic_us() - written_us < AGAIN_US))
        return;
    last = *load;
    written_us = monotonic_us();
    write_event("load",
                json_pack("{s:s, s:s, s:I, s:I, s:I, s:f, s:I, s:I, s:I}", "strategy", load->strategy,
                          "phase", load->phase, "think_ms", (json_int_t)load->think_ms, "step",
                          (json_int_t)load->step, "steps", (json_int_t)load->steps, "share", load->share,
                          "answers", (json_int_t)load->answers, "created", (json_int_t)load->created,
                          "elapsed_ms", (json_int_t)(load->elapsed_s * 1000)));
}

void events_traces(struct testbed *testbed, int64_t product)
{
    json_t *list = wanted && testbed->given < testbed->count ? json_array() : NULL;
    for (size_t i = testbed->given; list && i < testbed->count; i++) {
        json_t *traces = service_client_recent(testbed->clients[i], product, TRACES_WANTED);
        if (traces)
            json_array_append_new(list, traces);
    }
    if (list)
        write_event("traces", list);
}

void events_row(const json_t *row)
{
    if (wanted)
        write_event("row", json_incref((json_t *)row));
}
