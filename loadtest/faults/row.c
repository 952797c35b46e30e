/* What is kept of a fault: a row for each strategy. */
#include "loadtest/faults/row.h"

json_t *fault_row_new(const struct fault_run *run, const struct fault_subject *subject)
{
    const struct fault_counts *counts = &subject->counts;
    const struct strategy *strategy = subject->strategy;
    char promises[64];
    json_t *row = json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:s, s:s?}", "fault", run->fault->name,
                            "strategy", strategy->name, "guarantee", guarantee_name(strategy->guarantee),
                            "judged_by", fault_promises(subject->expected, promises), "expected",
                            subject->expected & SEEN_ANY ? "caught" : "kept", "cycles",
                            (json_int_t)subject->cycles, "verdict",
                            verdict_name(fault_verdict(run->fault, subject)), "reason", subject->reason);
    if (!row || subject->cycles == 0)
        return row;
    const struct {
        const char *key;
        int64_t value;
    } FIGURES[] = {
        {"intents", counts->intents},
        {"acknowledged", counts->acknowledged},
        {"unclear", counts->unclear},
        {"refused", counts->refused},
        {"turned_away", counts->turned_away},
        {"orders", counts->orders},
        {"lost", counts->lost},
        {"duplicated", counts->duplicated},
        {"denied", counts->denied},
        {"wrong_answers", counts->wrong},
        {"disordered", fault_sees_its_place(strategy) ? counts->disordered : 0},
        {"sections", counts->sections},
        {"overlaps", counts->overlaps},
        {"oversold", counts->oversold},
        {"drift", counts->drift},
        {"amounts_wrong", counts->amounts_wrong},
        {"empty_cycles", subject->empty},
        {"seen_in", subject->seen_in},
        {"struck", subject->outages},
        {"longest_outage_ms", subject->longest_outage_ms},
        {"longest_recovery_ms", subject->longest_recovery_ms},
        {"bound_ms", run->fault->bound_ms},
    };
    for (size_t i = 0; i < sizeof FIGURES / sizeof FIGURES[0]; i++)
        if (json_object_set_new(row, FIGURES[i].key, json_integer((json_int_t)FIGURES[i].value)) != 0) {
            json_decref(row);
            return NULL;
        }
    if (run->history && run->history->oddity[0] && counts->wrong > 0 &&
        json_object_set_new(row, "oddity", json_string(run->history->oddity)) != 0) {
        json_decref(row);
        return NULL;
    }
    return row;
}
