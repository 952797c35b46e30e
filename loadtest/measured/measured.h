/* The result of `loadtest growth`: its axes and how it is printed. */
#ifndef OVERSELL_LOADTEST_GROWTH_GROWTH_H
#define OVERSELL_LOADTEST_GROWTH_GROWTH_H

#include "loadtest/report/table.h"

/* What grows. A row's member "axis" has the name. */
enum growth_axis { GROWTH_CONNECTIONS, GROWTH_PRODUCTS, GROWTH_ORDERS, GROWTH_AXES };

extern const char *const growth_axis_names[GROWTH_AXES];

extern const struct result_kind growth_result;

/* The pictures of a report; see struct result_kind. */
json_t *growth_charts(const json_t *document);

#endif
