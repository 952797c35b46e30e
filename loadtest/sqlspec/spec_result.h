/* How the result of a search of a specification is printed. */
#ifndef OVERSELL_LOADTEST_SQLSPEC_SPEC_RESULT_H
#define OVERSELL_LOADTEST_SQLSPEC_SPEC_RESULT_H

#include "loadtest/report/table.h"

extern const struct result_kind specification_result;

#endif
