/* Formats numbers for people. */
#ifndef OVERSELL_LOADTEST_CHART_NUMBER_TEXT_H
#define OVERSELL_LOADTEST_CHART_NUMBER_TEXT_H

#define NUMBER_MAX 64
#define NO_NUMBER "–"

/* VALUE rounded to DECIMALS, 0 or more, its digits in groups of three; NO_NUMBER for what is no finite number, or is too large to
 * read. BUFFER of NUMBER_MAX bytes, returned. */
const char *number_text(double value, int decimals, char *buffer);

#endif
