/* Writes lines of log to standard error, as text or as JSON. Any thread. */
#ifndef OVERSELL_BASE_LOG_H
#define OVERSELL_BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>

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

/* As log_line, up to LOG_BURST lines at once and one more each second, for each place that calls it and each CLIENT (a text).
 * LOG_SHARES clients have their own share; of more, some have one in common. FORMAT must end with %s, for the text that says
 * how many lines of this share were left out since the last one. */
#define log_bounded(level, client, format, ...)                                                              \
    do {                                                                                                     \
        static struct log_valve valves_[LOG_SHARES];                                                         \
        char left_out_[LOG_LEFT_OUT_SIZE];                                                                   \
        if (log_valve_counts(&valves_[log_share(client)], left_out_))                                        \
            log_line(level, format, __VA_ARGS__, left_out_);                                                 \
    } while (0)

enum { LOG_BURST = 20, LOG_SHARES = 64, LOG_LEFT_OUT_SIZE = 64 };

struct log_valve {
    _Atomic long next_us;  /* when all lines so far will have been paid for, at one line a second */
    _Atomic long left_out; /* lines that were not written since the last one */
};
/* The share of a client, below LOG_SHARES: always the same. */
size_t log_share(const char *client);
bool log_valve_opens(struct log_valve *valve);
/* The same for LOG_BURST lines at once. If it opens, RET_LEFT_OUT is "", or says how many lines were left out. */
bool log_valve_counts(struct log_valve *valve, char ret_left_out[static LOG_LEFT_OUT_SIZE]);

/* error, warning, info, debug: names ended by NULL, in the order of enum log_level. */
extern const char *const log_level_names[];

#endif
