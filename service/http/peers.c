/* Counts the open connections and the waiting calls of each client address, in a tree of the addresses that have any. */
#include "service/http/peers.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct peer {
    struct in6_addr address; /* first: the tree's key */
    unsigned count, calls[HTTP_CALL_KINDS];
};

struct http_peers {
    pthread_mutex_t mutex;
    void *tree;
    unsigned most, most_local, most_calls[HTTP_CALL_KINDS];
};

struct http_peers *http_peers_new(unsigned most, unsigned most_local,
                                  const unsigned most_calls[static HTTP_CALL_KINDS])
{
    struct http_peers *peers = calloc(1, sizeof *peers);
    if (!peers)
        return NULL;
    pthread_mutex_init(&peers->mutex, NULL);
    peers->most = most;
    peers->most_local = most_local;
    memcpy(peers->most_calls, most_calls, sizeof peers->most_calls);
    return peers;
}

void http_peers_free(struct http_peers *peers)
{
    if (!peers)
        return;
    tdestroy(peers->tree, free);
    pthread_mutex_destroy(&peers->mutex);
    free(peers);
}

static int by_address(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct in6_addr));
}

/* The key that an address is counted under. An IPv4 address becomes ::ffff:a.b.c.d. */
static struct in6_addr key_of(const struct sockaddr *address, bool *ret_is_local)
{
    struct in6_addr key = {0};
    if (address->sa_family == AF_INET6) {
        key = ((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
    } else {
        key.s6_addr[10] = key.s6_addr[11] = 0xff;
        memcpy(&key.s6_addr[12], &((const struct sockaddr_in *)(const void *)address)->sin_addr, 4);
    }
    bool is_v4 = IN6_IS_ADDR_V4MAPPED(&key);
    *ret_is_local = is_v4 ? key.s6_addr[12] == 127 : IN6_IS_ADDR_LOOPBACK(&key);
    if (!is_v4 && !*ret_is_local)
        memset(&key.s6_addr[8], 0, 8);
    return key;
}

void http_peers_name(const struct sockaddr *address, char *ret_text, size_t size)
{
    char text[INET6_ADDRSTRLEN];
    bool is_local;
    struct in6_addr key = key_of(address, &is_local);
    bool is_v4 = IN6_IS_ADDR_V4MAPPED(&key);
    if (!inet_ntop(is_v4 ? AF_INET : AF_INET6, is_v4 ? &key.s6_addr[12] : key.s6_addr, text, sizeof text))
        text[0] = '\0';
    snprintf(ret_text, size, "%s%s", text, is_v4 || is_local ? "" : "/64");
}

/* NULL: out of memory. */
static struct peer *find_or_add(struct http_peers *peers, const struct in6_addr *key)
{
    struct peer **found = tfind(key, &peers->tree, by_address);
    if (found)
        return *found;
    struct peer *peer = calloc(1, sizeof *peer);
    if (!peer)
        return NULL;
    peer->address = *key;
    if (tsearch(peer, &peers->tree, by_address))
        return peer;
    free(peer);
    return NULL;
}

/* 0: any number. */
static unsigned most_connections(const struct http_peers *peers, const struct sockaddr *address,
                                 struct in6_addr *ret_key)
{
    bool is_local;
    *ret_key = key_of(address, &is_local);
    return is_local ? peers->most_local : peers->most;
}

bool http_peers_limits(const struct http_peers *peers, const struct sockaddr *address)
{
    struct in6_addr key;
    return most_connections(peers, address, &key) > 0;
}

bool http_peers_add(struct http_peers *peers, const struct sockaddr *address)
{
    struct in6_addr key;
    unsigned most = most_connections(peers, address, &key);
    if (most == 0)
        return true;
    pthread_mutex_lock(&peers->mutex);
    struct peer *peer = find_or_add(peers, &key);
    bool room = peer && ++peer->count <= most;
    pthread_mutex_unlock(&peers->mutex);
    return room;
}

void http_peers_remove(struct http_peers *peers, const struct sockaddr *address)
{
    struct in6_addr key;
    if (most_connections(peers, address, &key) == 0)
        return;
    pthread_mutex_lock(&peers->mutex);
    struct peer **found = tfind(&key, &peers->tree, by_address), *peer = found ? *found : NULL;
    if (peer && --peer->count == 0) { /* not counted if memory was out when it was added */
        tdelete(&key, &peers->tree, by_address);
        free(peer);
    }
    pthread_mutex_unlock(&peers->mutex);
}

/* The entry of an address whose connections have a limit, with the mutex held; NULL: there is none. */
static struct peer *lock_and_find(struct http_peers *peers, const struct sockaddr *address)
{
    bool is_local;
    struct in6_addr key = key_of(address, &is_local);
    pthread_mutex_lock(&peers->mutex);
    struct peer **found = tfind(&key, &peers->tree, by_address);
    return found ? *found : NULL;
}

bool http_peers_begin_call(struct http_peers *peers, const struct sockaddr *address, enum http_call kind,
                           unsigned *ret_earlier)
{
    struct peer *peer = lock_and_find(peers, address);
    unsigned most = peers->most_calls[kind];
    bool room = !peer || most == 0 || peer->calls[kind] < most;
    *ret_earlier = peer ? peer->calls[kind] : 0;
    if (peer && room)
        peer->calls[kind]++;
    pthread_mutex_unlock(&peers->mutex);
    return room;
}

void http_peers_end_call(struct http_peers *peers, const struct sockaddr *address, enum http_call kind)
{
    struct peer *peer = lock_and_find(peers, address);
    if (peer && peer->calls[kind] > 0)
        peer->calls[kind]--;
    pthread_mutex_unlock(&peers->mutex);
}
