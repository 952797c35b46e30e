/* The writer: a thread that takes accepted orders from the stream in Redis and writes them to PostgreSQL.
 *
 * Each process has one, all of them together form the stream's group of consumers: an order is handed to one of them, and
 * to another if that one dies. An order may so be met twice; it is written once, by its id. The writer also keeps ids ready
 * for orders to come, and holds Redis's stock against PostgreSQL every few seconds. */
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
/* Lets it write what is in the stream now, for DRAIN_MS at most, then ends it. What is left stays in Redis, for other
 * processes or the next start. WRITER may be NULL. */
void writer_stop(struct writer *writer);

/* There will be orders to write. Any thread; costs next to nothing once it is awake. WRITER may be NULL. */
void writer_wake(struct writer *writer);

/* Its metrics, as Prometheus text. Any thread. WRITER may be NULL. */
void writer_print_metrics(struct writer *writer, FILE *to);

#endif
