/* One line of log to standard error, as text or as JSON. Any thread. */
#ifndef OVERSELL_BASE_LOG_H
#define OVERSELL_BASE_LOG_H

#include <stdbool.h>

enum log_level { LOG_ERROR, LOG_WARNING, LOG_INFO, LOG_DEBUG };

/* To be called before the first thread is started. INSTANCE is kept, not copied. */
void log_setup(enum log_level least, bool json, const char *instance);

/* FORMAT makes one line without an end; what it contains must not be a secret. */
void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* As log_line, at most once a second for each place that calls it. */
#define log_seldom(level, ...)                                                                               \
    do {                                                                                                     \
        static struct log_valve valve_;                                                                      \
        if (log_valve_opens(&valve_))                                                                        \
            log_line(level, __VA_ARGS__);                                                                    \
    } while (0)

struct log_valve {
    _Atomic long next_us;
};
bool log_valve_opens(struct log_valve *valve);

/* error, warning, info, debug: names ended by NULL, in the order of enum log_level. */
extern const char *const log_level_names[];

#endif
