/* A proxy between a user's service and PostgreSQL that holds each statement until it is released, and can hold back an answer.
 * It stands in for no server: it forwards the bytes of both sides unchanged. TLS between the service and the proxy is refused. */
#ifndef OVERSELL_LOADTEST_OWN_STATEMENT_GATE_H
#define OVERSELL_LOADTEST_OWN_STATEMENT_GATE_H

#include "loadtest/own/postgres_messages.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GATE_CONNECTIONS = 64, GATE_NO_OWNER = -1 };

/* One connection of the service, as the explorer may see it between gate_lock and gate_unlock. */
struct gate_connection {
    bool used;
    bool starts;               /* PostgreSQL does not take statements yet */
    bool held;                 /* a statement waits for its release */
    bool trivial;              /* it changes and reads nothing: BEGIN, SET, or a preparation */
    bool running;              /* a statement was released, and PostgreSQL has not finished it */
    bool keep_answers;         /* set by the explorer: what PostgreSQL answers is held back */
    bool has_answers;          /* there is some */
    char transaction;          /* 'I': none, 'T': open, 'E': failed */
    int owner;                 /* set by the explorer */
    int32_t pid;               /* of PostgreSQL's process */
    char text[MESSAGE_TEXT];   /* the held or running statement, with its parameters */
    char answer[MESSAGE_TEXT]; /* its first row, its command tag or its error */
    bool deadlock;             /* PostgreSQL ended the transaction because of a deadlock */
};

struct gate;

/* Listens on a free port of 127.0.0.1, and forwards to HOST (a name, an address or the folder of a socket) and PORT. A thread does
 * the work. NULL, having said why on stderr. */
struct gate *gate_open(const char *host, const char *port);
/* Closes all connections. NULL is allowed. */
void gate_close(struct gate *gate);
unsigned gate_port(const struct gate *gate);

void gate_lock(struct gate *gate);
void gate_unlock(struct gate *gate);
/* Waits, with the lock held, until something has changed or until UNTIL_US of the monotonic clock. */
void gate_wait(struct gate *gate, int64_t until_us);
/* Wakes gate_wait. With the lock held. */
void gate_changed(struct gate *gate);
/* GATE_CONNECTIONS of them. With the lock held. */
struct gate_connection *gate_connection(struct gate *gate, size_t i);

/* From now on statements wait, or do not. With the lock held; false releases those that wait. */
void gate_hold(struct gate *gate, bool hold);
/* Releases the held statement, and the answers that are held back. With the lock held. */
void gate_release(struct gate *gate, size_t i);
void gate_release_answers(struct gate *gate, size_t i);
/* Closes all connections. With the lock held. */
void gate_cut(struct gate *gate);

#endif
