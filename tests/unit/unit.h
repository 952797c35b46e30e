/* What every unit test includes: cmocka with the headers that it wants first, and a monotonic clock to wait by. */
#ifndef OVERSELL_TESTS_UNIT_UNIT_H
#define OVERSELL_TESTS_UNIT_UNIT_H

/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#include <stdbool.h>
#include <string.h>
#include <time.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* How late a thread of a busy machine may be before a test calls it stuck. */
enum { PATIENCE_US = 60 * 1000 * 1000 };
/* For alarm(): a test with threads that takes longer has lost a wake-up, and would wait for ever. */
enum { STUCK_S = 900 };

static inline void sleep_us(int64_t us)
{
    struct timespec pause = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
    nanosleep(&pause, NULL);
}

#endif
