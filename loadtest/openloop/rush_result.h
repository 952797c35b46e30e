/* How the result of a rush is printed: its columns, its title, and what stands beneath the table. */
#ifndef OVERSELL_LOADTEST_OPENLOOP_RUSH_SHEET_H
#define OVERSELL_LOADTEST_OPENLOOP_RUSH_SHEET_H

#include "loadtest/report/notes.h"
#include "loadtest/report/sheet.h"

enum { RUSH_COLUMNS = 37 };

extern const struct column rush_columns[RUSH_COLUMNS];
void title_rush(const json_t *document, char *ret_title, size_t size);
notes_fn notes_of_rush;

#endif
