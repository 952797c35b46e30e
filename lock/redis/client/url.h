/* Reading a Redis server's address, without connecting to it. */
#ifndef OVERSELL_LOCK_REDIS_CLIENT_URL_H
#define OVERSELL_LOCK_REDIS_CLIENT_URL_H

#include <stdbool.h>
#include <stddef.h>

struct redis_url {
    bool tls;       /* rediss:// */
    char path[108]; /* of the unix socket; "" for TCP */
    char host[256]; /* "localhost" where the URL names none */
    char port[8];   /* "6379" where it names none */
    char user[128]; /* "" for none: then the password is the default user's */
    char password[512];
    int database;
    char place[300]; /* "HOST:PORT" or the path: what may be shown and logged, without the password */
};

/* Reads SIZE bytes of URL, one of
 *     redis://[[user]:password@][host][:port][/[database]]     rediss://… the same
 *     unix://[[user]:password@]/path[?db=database]
 * with percent-escapes decoded in user, password, host and path; an IPv6 address stands in brackets. False with the
 * reason, which never tells the password, in RET_ERROR. */
bool redis_url_read(const char *url, size_t size, struct redis_url *ret_url, const char **ret_error);

#endif
