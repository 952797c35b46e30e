/* Several strategies measured one after the other: what compare and diff have in common. */
#ifndef OVERSELL_LOADTEST_COMPARISON_H
#define OVERSELL_LOADTEST_COMPARISON_H

#include "loadtest/measure.h"
#include "loadtest/options.h"

#include <jansson.h>
#include <stdbool.h>

/* The settings that say what is measured, and where. */
struct comparison {
    struct lab_settings lab;
    struct plan plan;
    int64_t repeat;
};

#define COMPARISON_DEFAULTS                                                                                  \
    {                                                                                                        \
        .lab = LAB_DEFAULTS,                                                                                 \
        .plan = {.sell_out = true,                                                                           \
                 .throughput = true,                                                                         \
                 .connections = 16,                                                                          \
                 .stock = 100,                                                                               \
                 .quantity = 1,                                                                              \
                 .duration_ms = 1000,                                                                        \
                 .product = 1,                                                                               \
                 .patience_ms = 60000},                                                                      \
        .repeat = 1                                                                                          \
    }

/* The rows of an option table that fill a struct comparison, MEMBER of TYPE. */
#define COMPARISON_OPTIONS(type, member)                                                                     \
    LAB_OPTIONS(type, member.lab),                                                                           \
        {"--connections",                                                                                    \
         "C",                                                                                                \
         OPTION_NUMBER,                                                                                      \
         offsetof(type, member.plan.connections),                                                            \
         1,                                                                                                  \
         10000,                                                                                              \
         NULL,                                                                                               \
         "connections in all, each with one order at a time"},                                               \
        {"--stock", "S",       OPTION_NUMBER, offsetof(type, member.plan.stock),                             \
         1,         100000000, NULL,          "units to sell out"},                                          \
        {"--quantity", "Q",  OPTION_NUMBER,   offsetof(type, member.plan.quantity), 1,                       \
         1000000,      NULL, "units an order"},                                                              \
        {"--requests",                                                                                       \
         "R",                                                                                                \
         OPTION_NUMBER,                                                                                      \
         offsetof(type, member.plan.requests),                                                               \
         0,                                                                                                  \
         100000000,                                                                                          \
         NULL,                                                                                               \
         "orders sent to sell out (0: four times what the stock is good for);\n"                             \
         "it ends earlier once 512 in a row were told \"sold out\""},                                        \
        {"--duration",                                                                                       \
         "T",                                                                                                \
         OPTION_DURATION,                                                                                    \
         offsetof(type, member.plan.duration_ms),                                                            \
         100,                                                                                                \
         3600000,                                                                                            \
         NULL,                                                                                               \
         "how long the throughput phase measures"},                                                          \
        {"--think-ms",                                                                                       \
         "M",                                                                                                \
         OPTION_NUMBER,                                                                                      \
         offsetof(type, member.plan.think_ms),                                                               \
         0,                                                                                                  \
         60000,                                                                                              \
         NULL,                                                                                               \
         "pause of every order inside its critical section, between read and write"},                        \
        {"--repeat", "K", OPTION_NUMBER, offsetof(type, member.repeat),                                      \
         1,          100, NULL,          "run everything K times; the worst verdict counts, and medians"},   \
        {"--product",                                                                                        \
         "ID",                                                                                               \
         OPTION_NUMBER,                                                                                      \
         offsetof(type, member.plan.product),                                                                \
         1,                                                                                                  \
         INT64_MAX,                                                                                          \
         NULL,                                                                                               \
         "the product that is ordered; its orders are DELETED before each phase"},                           \
    {                                                                                                        \
        "--patience", "T", OPTION_DURATION, offsetof(type, member.plan.patience_ms), 1000, 3600000, NULL,    \
            "give up after so long without a single answer"                                                  \
    }

/* Checks what the rows of the table cannot; says on stderr what is wrong. */
bool comparison_valid(const struct comparison *comparison);
/* The settings as they stand in a result. */
json_t *comparison_settings(const struct comparison *comparison, const struct lab *lab,
                            const json_t *strategies);
/* Measures the STRATEGIES, rows of GET /strategies, and returns their rows; the services' own strategy is
 * set again afterwards where they were there before. NULL, having said why on stderr unless it was an
 * interrupt. */
json_t *comparison_run(const struct comparison *comparison, struct lab *lab, const json_t *strategies);

#endif
