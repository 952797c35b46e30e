/* Formats numbers for people. */
#include "loadtest/chart/number_text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define LARGEST 1e24 /* its digits and commas fit */

/* Puts a comma between groups of three digits before the decimal point. */
static void group_digits(char *text)
{
    char *digits = text + (*text == '-');
    size_t whole = strspn(digits, "0123456789");
    for (char *at = digits + whole; whole > 3; whole -= 3) {
        at -= 3;
        memmove(at + 1, at, strlen(at) + 1);
        *at = ',';
    }
}

const char *number_text(double value, int decimals, char *buffer)
{
    double half = 0.5 * pow(10, -decimals); /* so that nothing is rounded to a negative zero */
    if (!isfinite(value) || fabs(value) > LARGEST) {
        snprintf(buffer, NUMBER_MAX, "%s", NO_NUMBER);
        return buffer;
    }
    snprintf(buffer, NUMBER_MAX - 12, "%.*f", decimals, fabs(value) < half ? 0.0 : value);
    group_digits(buffer);
    return buffer;
}
