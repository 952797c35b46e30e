/* The notes on rows that have a sale, its audit and a verdict: those of compare, diff and rush. */
#ifndef OVERSELL_LOADTEST_LOAD_SALE_NOTES_H
#define OVERSELL_LOADTEST_LOAD_SALE_NOTES_H

#include "loadtest/report/table.h"

notes_fn sale_notes;

#endif
