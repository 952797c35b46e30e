/* Counts and limits the open connections, and the waiting calls, of each client address. For service/http/server.c only; any thread. */
#ifndef OVERSELL_SERVICE_HTTP_PEERS_H
#define OVERSELL_SERVICE_HTTP_PEERS_H

#include <stdbool.h>
#include <sys/socket.h>

struct http_peers;

/* MOST: connections of one address; MOST_LOCAL: of one loopback address; 0: any number. MOST_CALLS: waiting calls of an
 * address whose connections have a limit. NULL: out of memory. */
struct http_peers *http_peers_new(unsigned most, unsigned most_local, unsigned most_calls);
void http_peers_free(struct http_peers *peers);

/* Writes what ADDRESS counts as: an IPv4 address, or the first 64 bits of an IPv6 one, "2001:db8::/64". */
void http_peers_name(const struct sockaddr *address, char *ret_text, size_t size);

/* Counts a new connection of ADDRESS. False: it exceeds the limit, or memory is out; if possible it is counted anyway, so
 * the caller always calls http_peers_remove. IPv6 addresses count by their first 64 bits: one machine can use all addresses
 * that share them. */
bool http_peers_add(struct http_peers *peers, const struct sockaddr *address);
/* A connection of ADDRESS that was passed to http_peers_add has ended. */
void http_peers_remove(struct http_peers *peers, const struct sockaddr *address);

/* Counts a call of ADDRESS, on a connection that was added. *ret_earlier: its calls that wait already; 0 if it has no limit.
 * False: the call would exceed MOST_CALLS, and is not counted. */
bool http_peers_begin_call(struct http_peers *peers, const struct sockaddr *address, unsigned *ret_earlier);
/* A call that http_peers_begin_call counted has ended; its connection is still open. */
void http_peers_end_call(struct http_peers *peers, const struct sockaddr *address);

#endif
