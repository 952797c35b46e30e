/* Counts and limits the open connections, and the waiting calls, of each client address. The functions are for the files of service/http
 * only; any thread. */
#ifndef OVERSELL_SERVICE_HTTP_PEERS_H
#define OVERSELL_SERVICE_HTTP_PEERS_H

#include <stdbool.h>
#include <sys/socket.h>

struct http_peers;

/* Calls are counted by kind. */
enum http_call { HTTP_CALL_ORDER, HTTP_CALL_SEARCH, HTTP_CALL_OTHER, HTTP_CALL_KINDS };

/* MOST: connections of one address; MOST_LOCAL: of one loopback address; 0: any number. MOST_CALLS: waiting calls of each kind
 * of an address whose connections have a limit; 0: any number. NULL: out of memory. */
struct http_peers *http_peers_new(unsigned most, unsigned most_local,
                                  const unsigned most_calls[static HTTP_CALL_KINDS]);
void http_peers_free(struct http_peers *peers);

/* Writes what ADDRESS counts as: an IPv4 address, or the first 64 bits of an IPv6 one, "2001:db8::/64". */
void http_peers_name(const struct sockaddr *address, char *ret_text, size_t size);

/* Counts a new connection of ADDRESS. False: it exceeds the limit, or memory is out; if possible it is counted anyway, so
 * the caller always calls http_peers_remove. IPv6 addresses count by their first 64 bits: one machine can use all addresses
 * that share them. */
bool http_peers_add(struct http_peers *peers, const struct sockaddr *address);
/* A connection of ADDRESS that was passed to http_peers_add has ended. */
void http_peers_remove(struct http_peers *peers, const struct sockaddr *address);

/* Do the connections of ADDRESS have a limit? If not, many callers may share the address. */
bool http_peers_limits(const struct http_peers *peers, const struct sockaddr *address);

/* Counts a call of ADDRESS, on a connection that was added. *ret_earlier: its calls of this kind that wait already; 0 if it has
 * no limit. False: the call would exceed MOST_CALLS, and is not counted. */
bool http_peers_begin_call(struct http_peers *peers, const struct sockaddr *address, enum http_call kind,
                           unsigned *ret_earlier);
/* A call that http_peers_begin_call counted has ended; its connection is still open. */
void http_peers_end_call(struct http_peers *peers, const struct sockaddr *address, enum http_call kind);

#endif
