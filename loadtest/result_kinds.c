/* Every kind of result that the load test can print. */
#include "loadtest/result_kinds.h"

#include "loadtest/cli/complain.h"
#include "loadtest/compare/compare_result.h"
#include "loadtest/explore/run/explore_result.h"
#include "loadtest/explore/run/fault_matrix.h"
#include "loadtest/faults/row.h"
#include "loadtest/history/history.h"
#include "loadtest/measured/measured.h"
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

static const struct result_kind *find_kind(const char *name)
{
    for (size_t i = 0; i < KIND_COUNT; i++)
        if (strcmp(KINDS[i]->name, name) == 0)
            return KINDS[i];
    return NULL;
}

static bool are_objects(const json_t *rows)
{
    size_t i;
    json_t *row;
    json_array_foreach(rows, i, row) {
        if (!json_is_object(row))
            return false;
    }
    return json_is_array(rows);
}

const struct result_kind *result_kind_of(const json_t *document, const char *path)
{
    const char *name = result_kind_name(document);
    const struct result_kind *kind = find_kind(name);
    char valid[300] = "";
    size_t used = 0;
    if (kind && are_objects(json_object_get(document, kind->rows)))
        return kind;
    for (size_t i = 0; i < KIND_COUNT && used < sizeof valid; i++)
        used += (size_t)snprintf(valid + used, sizeof valid - used, " %s", KINDS[i]->name);
    if (kind)
        complain("%s is damaged: it has no array '%s' of objects. Run the command again, or use another file",
                 path, kind->rows);
    else if (*name)
        complain("results of the kind '%s' cannot be printed (%s). Valid kinds:%s", name, path, valid);
    else
        complain("%s is not a result of loadtest: it has no 'kind'. Use a file that --export-json wrote",
                 path);
    return NULL;
}
