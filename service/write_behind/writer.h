/* The writer: a thread that moves accepted orders from the stream in Redis to PostgreSQL.
 *
 * Each process has one. All writers form the stream's consumer group: Redis hands an order to one of them, and to another one
 * if that one dies. A writer may therefore meet an order twice; the order's id ensures that it is stored once. The writer also
 * refills the order ids, and compares the stock in Redis with PostgreSQL every few seconds. */
#ifndef OVERSELL_SERVICE_WRITE_BEHIND_WRITER_H
#define OVERSELL_SERVICE_WRITE_BEHIND_WRITER_H

#include "service/write_behind/order_ids.h"

#include <stdio.h>

struct writer;

/* Starts the thread, which rests until there is something to write, in Redis or by writer_wake. INSTANCE is this process's
 * name, at most INSTANCE_MAX bytes. IDS are refilled by the thread and outlive it. *ret_writer is NULL if no Redis is
 * configured. False: out of memory or threads. */
bool writer_start(const char *database_url, const char *instance, struct order_ids *ids,
                  struct writer **ret_writer);
/* Lets the writer store what is in the stream now, for up to 10 s, then ends it. The rest stays in Redis, for other processes or
 * the next start. WRITER may be NULL. */
void writer_stop(struct writer *writer);

/* Wakes the writer, because there will be orders to store. Cheap if it is awake. Any thread. WRITER may be NULL. */
void writer_wake(struct writer *writer);

/* Prints its metrics as Prometheus text. Any thread. WRITER may be NULL. */
void writer_print_metrics(struct writer *writer, FILE *to);

#endif
