/* Every kind of result that the load test can print. */
#ifndef OVERSELL_LOADTEST_RESULT_KINDS_H
#define OVERSELL_LOADTEST_RESULT_KINDS_H

#include "loadtest/report/table.h"

/* How DOCUMENT, the result that the file PATH stores, is printed. NULL, with the reason on stderr: it is of no such kind, or has no rows. */
const struct result_kind *result_kind_of(const json_t *document, const char *path);

#endif
