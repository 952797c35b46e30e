/* A proxy between a user's service and its servers that holds each statement until it is released, and can hold back an answer.
 * It stands in for no server: it forwards the bytes of both sides unchanged. TLS between the service and the proxy is refused. */
#ifndef OVERSELL_LOADTEST_OWN_GATE_STATEMENT_GATE_H
#define OVERSELL_LOADTEST_OWN_GATE_STATEMENT_GATE_H

#include "loadtest/own/gate/wire_protocol.h"

enum { GATE_SERVERS_MAX = 2, GATE_CONNECTIONS = 64, GATE_NO_OWNER = -1 };

/* A server in front of which the gate stands: HOST is a name, an address or the folder of a socket. */
struct gate_server {
    const struct wire_protocol *protocol;
    const char *host, *port;
};

struct gate;

/* Listens on a free port of 127.0.0.1 for each of COUNT servers, which are at most GATE_SERVERS_MAX. A thread does the work. NULL, having
 * said why on stderr. */
struct gate *gate_open(const struct gate_server *servers, size_t count);
/* Closes all connections. NULL is allowed. */
void gate_close(struct gate *gate);
/* The port in front of server I. */
unsigned gate_port(const struct gate *gate, size_t i);

void gate_lock(struct gate *gate);
void gate_unlock(struct gate *gate);
/* Waits, with the lock held, until something has changed or until UNTIL_US of the monotonic clock. */
void gate_wait(struct gate *gate, int64_t until_us);
/* Wakes gate_wait. With the lock held. */
void gate_changed(struct gate *gate);
/* GATE_CONNECTIONS of them. With the lock held. */
struct gate_connection *gate_connection(struct gate *gate, size_t i);

/* The connection of PID in place I, also if it has been closed since; NULL: it is another one, and the one before it was, too. With the lock
 * held. */
const struct gate_connection *gate_connection_of(struct gate *gate, size_t i, int32_t pid);

/* From now on statements wait, or do not. With the lock held; false releases those that wait. */
void gate_hold(struct gate *gate, bool hold);
/* Releases the held statement, and the answers that are held back. With the lock held. */
void gate_release(struct gate *gate, size_t i);
void gate_release_answers(struct gate *gate, size_t i);
/* The held statement is never done: the service gets an error. It loses the connection instead if the protocol has no such error, or if the
 * server would keep a part of what was sent before. With the lock held. */
void gate_refuse(struct gate *gate, size_t i);
/* The service and the server lose this connection; what is held back is lost. With the lock held. */
void gate_close_connection(struct gate *gate, size_t i);
/* Why a connection could not be held so far, as a sentence without its end; NULL: nothing was wrong. With the lock held. */
const char *gate_problem(const struct gate *gate);
/* Why the service has probably given up a connection, for when it does not work at all; NULL. Takes the lock. */
const char *gate_hint(struct gate *gate);
/* Closes all connections. With the lock held. */
void gate_cut(struct gate *gate);

#endif
