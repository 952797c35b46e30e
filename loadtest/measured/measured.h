/* How results of the measuring tools in bench/ are printed: they are stored as JSON, and `loadtest report` reads them. */
#ifndef OVERSELL_LOADTEST_MEASURED_MEASURED_H
#define OVERSELL_LOADTEST_MEASURED_MEASURED_H

#include "loadtest/report/table.h"

/* What grows. A row's member "axis" has the name. */
enum growth_axis { GROWTH_CONNECTIONS, GROWTH_PRODUCTS, GROWTH_ORDERS, GROWTH_AXES };

extern const char *const growth_axis_names[GROWTH_AXES];

extern const struct result_kind bench_result, growth_result;

/* The pictures of a report; see struct result_kind. */
json_t *growth_charts(const json_t *document);

#endif
