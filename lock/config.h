/* Where the servers of the locks are, and what the names of keys begin with. */
#ifndef OVERSELL_LOCK_CONFIG_H
#define OVERSELL_LOCK_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

/* An address is "" where there is no such server. */
struct lock_config {
    const char *database_url;      /* LOCK_DATABASE_URL */
    const char *redis_url;         /* redis://…, rediss://… or unix://… */
    const char *redlock_urls;      /* the same, separated by commas */
    const char *zookeeper_connect; /* HOST:PORT,… */
    const char *etcd_endpoints;    /* http://HOST:PORT,… */
    const char *prefix;            /* what keys and paths begin with: "oversell" */
    /* In a class each product belongs to a different learner: a mutex for the whole shop is then one mutex for each product,
     * so that no learner waits for another. */
    bool separate_shops;
    /* How long a request may take at least, in milliseconds, even if the deadline has passed; 0: each lock's own limit. The
     * explorer's locks try once, and there a slow answer must not look like a server that is away. */
    int try_ms;
};

/* The configuration in use: for implementations of locks. No string is NULL. */
extern struct lock_config lock_config;

/* Sets the configuration; the strings are kept, not copied. To be called before the first lock is opened. */
void lock_configure(const struct lock_config *config);
/* Sets the configuration from the environment variables that the service reads too. False: a variable is not valid, and
 * RET_ERROR has the reason. To be called before the first lock is opened. */
bool lock_configure_from_environment(char *ret_error, size_t size);

/* How many servers REDLOCK_URLS and ETCD_ENDPOINTS may name. */
enum { LOCK_REDLOCK_MOST = 15, LOCK_ETCD_MOST = 16 };
/* How many servers LIST names, which are separated by commas. */
int lock_count_servers(const char *list);
/* The next server of *LIST, SIZE bytes from *RET_SERVER on, and moves *LIST behind it; false at the end of the list. */
bool lock_next_server(const char **list, const char **ret_server, size_t *ret_size);

#define LOCK_PREFIX_RULE "1 to 32 of A-Z a-z 0-9 . _ -, the first of them no ."
/* Does PREFIX follow LOCK_PREFIX_RULE? A longer one would be cut off inside the names of keys. */
bool lock_is_prefix(const char *prefix);

#endif
