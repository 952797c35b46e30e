/* Every kind of result that the load test can print. */
#ifndef OVERSELL_LOADTEST_RESULT_KINDS_H
#define OVERSELL_LOADTEST_RESULT_KINDS_H

#include "loadtest/report/table.h"

/* How DOCUMENT, a stored result, is printed. NULL, having said on stderr which kinds are valid. */
const struct result_kind *result_kind_of(const json_t *document);

#endif
