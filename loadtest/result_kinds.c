/* Every kind of result that the load test can print. */
#include "loadtest/result_kinds.h"

#include "loadtest/bench/cases.h"
#include "loadtest/compare/compare_result.h"
#include "loadtest/explore/run/explore_result.h"
#include "loadtest/explore/run/fault_matrix.h"
#include "loadtest/faults/row.h"
#include "loadtest/growth/growth.h"
#include "loadtest/history/history.h"
#include "loadtest/openloop/rush_row.h"
#include "loadtest/own/check_row.h"
#include "loadtest/own/schedules/explore_own_result.h"
#include "loadtest/report/result.h"
#include "loadtest/soak/soak.h"
#include "loadtest/sqlspec/permutation_result.h"
#include "loadtest/sqlspec/spec_result.h"

#include <stdio.h>
#include <string.h>

static const struct result_kind *const KINDS[] = {
    &compare_result,     &explore_result,     &rush_result,          &faults_result,       &soak_result,
    &bench_result,       &growth_result,      &diff_result,          &check_result,        &history_result,
    &explore_own_result, &permutation_result, &specification_result, &fault_matrix_result,
};

#define KIND_COUNT (sizeof KINDS / sizeof KINDS[0])

const struct result_kind *result_kind_of(const json_t *document)
{
    const char *name = result_kind_name(document);
    for (size_t i = 0; i < KIND_COUNT; i++)
        if (strcmp(KINDS[i]->name, name) == 0)
            return KINDS[i];
    fprintf(stderr, "loadtest: results of the kind '%s' cannot be printed (valid:", name);
    for (size_t i = 0; i < KIND_COUNT; i++)
        fprintf(stderr, " %s", KINDS[i]->name);
    fputs(")\n", stderr);
    return NULL;
}
