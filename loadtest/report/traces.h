/* The steps of recent orders as one trace file, for ui.perfetto.dev. */
#ifndef OVERSELL_LOADTEST_REPORT_TRACES_H
#define OVERSELL_LOADTEST_REPORT_TRACES_H

#include "loadtest/testbed/testbed.h"

/* Writes the traces of all services into one file, each as a separate process; false, having said why on
 * stderr. */
bool traces_write(struct testbed *testbed, const char *path);

#endif
