/* What an open-loop load has found: its memory and its sums. */
#include "loadtest/openloop/open_loop.h"

#include <stdlib.h>

void open_result_free(struct open_result *result)
{
    free(result->latencies);
    free(result->sales);
    *result = (struct open_result){0};
}

const struct hdr *open_latency(const struct open_result *result, size_t phase, enum answer answer)
{
    return &result->latencies[phase * ANSWER_COUNT + (size_t)answer];
}

struct open_counts open_totals(const struct open_result *result)
{
    struct open_counts sum = {0};
    for (size_t phase = 0; phase < PHASES_MAX; phase++) {
        const struct open_counts *counts = &result->phases[phase];
        sum.scheduled += counts->scheduled;
        sum.dropped += counts->dropped;
        sum.timed_out_waiting += counts->timed_out_waiting;
        sum.timed_out_sent += counts->timed_out_sent;
        sum.unanswered += counts->unanswered;
        sum.late += counts->late;
        for (int answer = 0; answer < ANSWER_COUNT; answer++)
            sum.answers[answer] += counts->answers[answer];
    }
    return sum;
}

int64_t open_answered(const struct open_counts *counts)
{
    int64_t sum = 0;
    for (int answer = 0; answer < ANSWER_COUNT; answer++)
        sum += counts->answers[answer];
    return sum;
}
