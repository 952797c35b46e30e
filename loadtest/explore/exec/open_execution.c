/* Opens an execution: its threads, its connections, and the steps of an order, which it learns from one that runs alone. */
#include "loadtest/explore/exec/execution.h"
#include "loadtest/explore/exec/lock_admin.h"

#include <stdio.h>

enum { FIRST_TRIES = 5 };

/* One order alone, with ample stock. */
static bool learn_profile(struct execution *execution)
{
    struct execution_settings settings = execution->settings;
    struct transition alone = {0, TRANSITION_STEP}, transitions[ENABLED_MAX];
    execution->settings.actors = 1;
    execution->settings.faults = 0;
    execution->settings.stock = settings.quantities[0];
    bool ok;
    int tries = 0;
    do { /* a first connection may take longer than the single try that a lock has here */
        ok = execution_start(execution);
        while (ok && execution_enabled(execution, transitions) > 0)
            ok = execution_apply(execution, alone);
        ok = ok && execution_end(execution);
    } while (ok && execution->ending.outcomes[0] != ORDER_CREATED && ++tries < FIRST_TRIES);
    execution->settings = settings;
    if (!ok)
        return false;
    enum outcome alone_it = execution->ending.outcomes[0];
    if (alone_it != ORDER_CREATED) {
        const char *why = execution->actors[0].placing.result.error;
        /* An unreachable or slow server says nothing about the strategy. */
        execution->fails_alone = alone_it != ORDER_BACKEND_UNAVAILABLE &&
                                 (alone_it != ORDER_LOCK_TIMEOUT || !settings.strategy->lock);
        return execution_fail(
            execution, "an order without competitors ends as %s%s%s%s", outcome_name(alone_it),
            alone_it == ORDER_SOLD_OUT ? ", although enough units are left" : "", *why ? ": " : "", why);
    }
    for (size_t i = 0; i < execution->trace.event_count && execution->profile_length < PROFILE_MAX; i++)
        if (execution->trace.events[i].what < STEP_COUNT)
            execution->profile[execution->profile_length++] = execution->trace.events[i].what;
    if (execution->profile_length > 0)
        execution->trace.last_step = execution->profile[execution->profile_length - 1];
    return true;
}

bool execution_open(struct execution *execution, struct product_schema *schema, const char *url,
                    const struct execution_settings *settings)
{
    *execution = (struct execution){.settings = *settings, .schema = schema};
    trace_init(&execution->trace);
    for (size_t i = 0; settings->records && i < settings->actors; i++)
        execution->trace.recorders[i] = recorder_new(); /* NULL: out of memory, and nothing is recorded */
    for (size_t i = 0; i < settings->actors; i++)
        if (!actor_open(&execution->actors[i], &execution->trace, (uint8_t)i, url, execution->error,
                        sizeof execution->error)) {
            execution->settings.actors = i;
            execution_close(execution);
            return false;
        }
    enum lock_status status = lock_admin_open(settings->strategy->lock, &execution->lock_admin);
    /* In one process a local lock in front would hide that what is behind it has ended. */
    execution->own_processes = settings->faults & SHOWN_BY_SECOND_PROCESS ||
                               (settings->faults & (SHOWN_BY_EXPIRY | SHOWN_BY_CRASH) &&
                                execution->lock_admin &&
                                settings->strategy->guarantee == GUARANTEE_WHILE_LEASE_HOLDS);
    if (status != LOCK_OK)
        snprintf(execution->error, sizeof execution->error, "%s: %s", settings->strategy->lock->name,
                 lock_status_name(status));
    else if (learn_profile(execution))
        return true;
    execution_close(execution);
    return false;
}
