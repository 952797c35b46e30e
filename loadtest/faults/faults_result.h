/* How the result of faults is printed: its columns, its title, and what stands beneath the table. */
#ifndef OVERSELL_LOADTEST_FAULTS_SHEET_H
#define OVERSELL_LOADTEST_FAULTS_SHEET_H

#include "loadtest/report/sheet.h"

enum { FAULT_COLUMNS = 25 };

extern const struct column fault_columns[FAULT_COLUMNS];
void title_faults(const json_t *document, char *ret_title, size_t size);
notes_fn notes_of_faults;

#endif
