/* Where the gate listens for the service's connections to one server, and how it reaches that server. */
#ifndef OVERSELL_LOADTEST_OWN_GATE_FRONT_H
#define OVERSELL_LOADTEST_OWN_GATE_FRONT_H

#include "loadtest/own/gate/statement_gate.h"

#include <netdb.h>
#include <sys/un.h>

struct front {
    const struct wire_protocol *protocol;
    struct addrinfo *addresses; /* of the server; NULL: it has a socket in a folder */
    struct sockaddr_un socket;
    int listener; /* -1: none */
    unsigned port;
    char problem[160]; /* why a connection to the server failed; "": none did */
};

/* Finds the server, and listens on a free port of 127.0.0.1. False, having said why on stderr. In both cases front_close releases what was
 * made. */
bool front_open(struct front *front, const struct gate_server *server);
void front_close(struct front *front);

/* The next connection of the service; -1: none. */
int front_accept(const struct front *front);
/* A new connection to the server; -1: none, and PROBLEM says why. Each address of the server is tried for up to ten seconds. */
int front_connect(struct front *front);
/* Says in the words of the protocol that there are too many connections, and closes CLIENT. */
void front_turn_away(const struct front *front, int client);

#endif
