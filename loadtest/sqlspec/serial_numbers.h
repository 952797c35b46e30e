/* Finds out, from the serial executions, whether the SQL of a specification depends on the numbers that sequences generate. */
#ifndef OVERSELL_LOADTEST_SQLSPEC_SERIAL_NUMBERS_H
#define OVERSELL_LOADTEST_SQLSPEC_SERIAL_NUMBERS_H

#include "loadtest/sqlspec/serial.h"

#include <stdbool.h>

/* Sets execution->sequences, before anything is compared. If the SQL contains a number that a sequence generates, such as 1, the sequences count as
 * they do without us, and their columns are not compared. If it compares or sorts generated numbers, a renaming keeps their sequence. False, having
 * said why. */
bool serial_allow_numbers(struct serial *serial, struct sql_execution *execution);

#endif
