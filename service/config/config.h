/* The service's configuration, read from flags and environment variables. */
#ifndef OVERSELL_SERVICE_CONFIG_CONFIG_H
#define OVERSELL_SERVICE_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>

struct config {
    const char *listen;
    const char *port_file;
    const char *instance;    /* "" for one made from the process id */
    const char *admin_token; /* "" for none */
    const char *admin_token_file;
    const char *allowed_hosts; /* names separated by commas, "" for none */
    const char *database_url;
    const char *lock_database_url; /* "" as DATABASE_URL */
    const char *redis_url;
    const char *redlock_urls;
    const char *zookeeper_connect;
    const char *etcd_endpoints;
    const char *lock_prefix;
    const char *strategy;
    const char *log_level;
    const char *log_format;
    int64_t workers;
    int64_t http_threads;
    int64_t queue;
    int64_t connections;
    int64_t lock_ttl_ms;
    int64_t lock_wait_ms;
    int64_t think_ms;
    int64_t product_limit;
    int64_t in_turn;         /* 0 or 1 */
    int64_t product_workers; /* 0: all */
    int64_t product_queue;   /* 0: as many as QUEUE */
    int64_t order_timeout_ms;
    int64_t request_timeout_ms;
    int64_t first_byte_ms;
    int64_t idle_timeout_ms;
    int64_t classroom; /* 0 or 1 */
    int64_t sandbox_idle_ms;
    int64_t sandboxes_per_address;
    int64_t learner_run_ms;
    int64_t connections_per_address; /* 0: no limit */
    bool token_made;                 /* ADMIN_TOKEN was made here, and nobody knows it yet */

    struct sockaddr_storage address; /* of LISTEN */
    socklen_t address_size;
};

/* Longest name of an instance, in bytes. */
enum { INSTANCE_MAX = 100 };

/* Bounds that PUT /strategy checks as well. */
enum { LOCK_TTL_MAX_MS = 600000, LOCK_WAIT_MAX_MS = 60000, THINK_MAX_MS = 10000, PRODUCT_LIMIT_MAX = 256 };

enum config_result { CONFIG_OK, CONFIG_HELP, CONFIG_BAD };

/* Reads the flags, which win over the environment, which wins over the defaults. Strings point into ARGV, the
 * environment or memory that is never freed. CONFIG_BAD: what is wrong and what would be valid went to ERRORS. */
enum config_result config_load(int argc, char *const argv[], struct config *ret_config, FILE *errors);

/* The table, for --help. */
void config_print_help(FILE *to);

#endif
