/* Checks the traces of a cycle for mutual exclusion. */
#include "loadtest/faults/checker/sections.h"

#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"

#include <stdlib.h>
#include <string.h>

#define TRACES_WANTED 1000 /* as many as a service gives */
#define TRACES_SINCE 200   /* more than a product has in a cycle */

static int64_t number(const json_t *object, const char *key)
{
    return (int64_t)json_integer_value(json_object_get(object, key));
}

static bool says(const json_t *object, const char *key, const char *text)
{
    const char *value = json_string_value(json_object_get(object, key));
    return value && strcmp(value, text) == 0;
}

/* False: the order had no lock, or has not committed. */
static bool section_of(const json_t *trace, struct section *ret_section)
{
    size_t i;
    json_t *step;
    bool held = false;
    json_array_foreach(json_object_get(trace, "steps"), i, step) {
        if (says(step, "step", "lock")) {
            ret_section->from_us = number(step, "end_us");
            held = true;
        }
        if (says(step, "step", "commit") || says(step, "step", "commit-stock")) {
            ret_section->to_us = number(step, "begin_us");
            return held;
        }
    }
    return false;
}

size_t sections_of(const json_t *answer, int64_t product, int64_t since_us, struct section *ret_sections,
                   size_t room)
{
    size_t i, count = 0;
    json_t *trace;
    json_array_foreach(json_object_get(answer, "traces"), i, trace) {
        struct section section;
        if (count < room && number(trace, "product_id") == product && says(trace, "outcome", "created") &&
            section_of(trace, &section) && section.from_us >= since_us)
            ret_sections[count++] = section;
    }
    return count;
}

static int by_begin(const void *a, const void *b)
{
    int64_t left = ((const struct section *)a)->from_us, right = ((const struct section *)b)->from_us;
    return (left > right) - (left < right);
}

size_t sections_overlapping(struct section *sections, size_t count)
{
    size_t overlapping = 0;
    int64_t until_us = INT64_MIN; /* the latest end of a section that began earlier */
    if (count > 0)
        qsort(sections, count, sizeof *sections, by_begin);
    for (size_t i = 0; i < count; i++) {
        overlapping += sections[i].from_us < until_us;
        if (sections[i].to_us > until_us)
            until_us = sections[i].to_us;
    }
    return overlapping;
}

/* When the order had the stock in hand: from the end of its last such step before AT_US; INT64_MAX: never. */
static int64_t in_hand_since(const json_t *trace, int64_t at_us)
{
    int64_t since_us = INT64_MAX, one_us = INT64_MAX;
    size_t i;
    json_t *step;
    json_array_foreach(json_object_get(trace, "steps"), i, step) {
        bool reads = says(step, "step", "read") || says(step, "step", "take");
        if (reads && (number(step, "end_us") <= at_us || since_us == INT64_MAX))
            since_us = number(step, "end_us");
        if (says(step, "step", "commit"))
            one_us = number(step, "begin_us");
    }
    return since_us == INT64_MAX ? one_us : since_us;
}

size_t moments_of(const json_t *answer, int64_t product, int64_t at_us)
{
    size_t i, count = 0;
    json_t *trace;
    json_array_foreach(json_object_get(answer, "traces"), i, trace) {
        count += number(trace, "product_id") == product && in_hand_since(trace, at_us) <= at_us &&
                 number(trace, "ended_us") > at_us;
    }
    return count;
}

/* The traces of the newest orders of a product, at most LIMIT; none if the service refuses to tell, which counts as a wrong answer. NULL:
 * interrupted. */
static json_t *recent(struct fault_testbed *testbed, int i, int64_t product, int limit,
                      struct fault_counts *counts)
{
    json_t *answer = service_client_recent(testbed->base.clients[i], product, limit);
    if (answer || interrupted())
        return answer;
    complain("no traces: %s", service_client_error(testbed->base.clients[i]));
    counts->wrong++;
    return json_object();
}

bool fault_moments_check(struct fault_testbed *testbed, int64_t product, int64_t at_us,
                         struct fault_counts *counts)
{
    for (int i = 0; i < FAULT_INSTANCES; i++) {
        json_auto_t *answer = recent(testbed, i, product, TRACES_SINCE, counts);
        if (!answer)
            return false;
        counts->critical += (int64_t)moments_of(answer, product, at_us);
    }
    return true;
}

bool fault_sections_check(struct fault_testbed *testbed, int64_t product, int64_t since_us,
                          struct fault_counts *counts)
{
    struct section sections[FAULT_INSTANCES * TRACES_WANTED];
    size_t count = 0;
    for (int i = 0; i < FAULT_INSTANCES; i++) {
        json_auto_t *answer = recent(testbed, i, product, TRACES_WANTED, counts);
        if (!answer)
            return false;
        count += sections_of(answer, product, since_us, &sections[count], TRACES_WANTED);
    }
    counts->sections += (int64_t)count;
    counts->overlaps += (int64_t)sections_overlapping(sections, count);
    return true;
}
