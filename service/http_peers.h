/* How many connections each client address has open, and how many it may. For http.c only; any thread. */
#ifndef OVERSELL_SERVICE_HTTP_PEERS_H
#define OVERSELL_SERVICE_HTTP_PEERS_H

#include <stdbool.h>
#include <sys/socket.h>

struct http_peers;

/* MOST connections of one address, MOST_LOCAL of this machine's own (loopback); 0: any number. NULL: out of memory. */
struct http_peers *http_peers_new(unsigned most, unsigned most_local);
void http_peers_free(struct http_peers *peers);

/* A connection of ADDRESS begins. False: it is one too many, or memory is out; it is counted all the same, if it can be.
 * IPv6 addresses count by their first 64 bits, which one machine can vary the rest of. */
bool http_peers_add(struct http_peers *peers, const struct sockaddr *address);
/* A connection of ADDRESS has ended, which add was called for. */
void http_peers_remove(struct http_peers *peers, const struct sockaddr *address);

#endif
