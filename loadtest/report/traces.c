/* The steps of recent orders as one trace file, for ui.perfetto.dev. */
#include "loadtest/report/traces.h"

#include "loadtest/cli/complain.h"
#include "loadtest/report/output.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Adds a service's events; it calls itself process 1, as they all do. Their clocks are one machine's. */
static bool append(json_t *events, const json_t *trace, size_t instance)
{
    size_t i;
    json_t *event;
    json_array_foreach(json_object_get(trace, "traceEvents"), i, event) {
        if (json_object_set_new(event, "pid", json_integer((json_int_t)instance + 1)) != 0 ||
            json_array_append(events, event) != 0)
            return false;
    }
    return true;
}

bool traces_write(struct testbed *testbed, const char *path)
{
    json_auto_t *events = json_array();
    for (size_t i = 0; i < testbed->count; i++) {
        json_auto_t *trace = service_client_traces(testbed->clients[i]);
        if (!trace || !append(events, trace, i)) {
            complain("no traces: %s", service_client_error(testbed->clients[i]));
            return false;
        }
    }
    json_auto_t *document = json_pack("{s:O, s:s}", "traceEvents", events, "displayTimeUnit", "ms");
    char *text = document ? json_dumps(document, JSON_COMPACT) : NULL;
    bool written = text && output_file(path, text, strlen(text));
    free(text);
    return written;
}
