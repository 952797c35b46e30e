/* Starts the order service, waits for a signal, and ends it so that every accepted order is answered. */
#include "base/clock.h"
#include "base/log.h"
#include "service/api/access.h"
#include "service/api/service.h"
#include "service/classroom/addresses.h"
#include "service/config/hide_passwords.h"
#include "service/engine/strategy_validate.h"

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum {
    DRAIN_EXTRA_MS = 5000, /* beyond the longest order */
    LAST_REPLIES_MS = 1000 /* to send what the workers replied last */
};
/* Descriptors that are no clients' connections: a worker has two connections to PostgreSQL and one to each kind of lock server,
 * at most; the other threads have OTHER_FILES. */
enum { FILES_OF_A_WORKER = 10, OTHER_FILES = 200 };

/* Raises the limit of file descriptors as far as the system allows. If that is too low for all connections, lowers the number
 * of connections, so that the workers can still reach their servers. */
static void raise_descriptor_limit(struct config *config)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    int64_t granted = limit.rlim_cur < INT32_MAX ? (int64_t)limit.rlim_cur : INT32_MAX;
    int64_t most = granted - OTHER_FILES - config->workers * FILES_OF_A_WORKER;
    if (most >= config->connections) {
        log_line(LOG_INFO, "%lld file descriptors, for %lld connections", (long long)granted,
                 (long long)config->connections);
        return;
    }
    if (most < 1)
        most = 1;
    log_line(LOG_WARNING,
             "%lld file descriptors allow only %lld of %lld connections; raise the hard limit (ulimit -Hn)",
             (long long)granted, (long long)most, (long long)config->connections);
    config->connections = most;
}

static bool write_port(const char *path, unsigned port)
{
    FILE *file = fopen(path, "we");
    if (!file)
        return false;
    bool written = fprintf(file, "%u\n", port) > 0;
    return fclose(file) == 0 && written;
}

/* Orders of one address that may wait: half of what one product may have, so that neither a product's queue nor the whole
 * admission queue is one client's. 0, any number, in a class: a learner orders one product, and the queue has room for
 * the orders of all of them, also where the class shares an address. */
static unsigned orders_per_address(const struct config *config)
{
    int64_t of_product = config->product_queue < config->queue ? config->product_queue : config->queue;
    return config->classroom ? 0 : (unsigned)(of_product + 1) / 2;
}

static bool start(struct service *service)
{
    const struct config *config = &service->config;
    if (config->product_queue == 0)
        service->config.product_queue = config->queue;
    service->orders.config = config;
    service->orders.instance = service->instance;
    service->orders.may_order = access_orders;
    service->runs = runs_new(config);
    service->responses = response_cache_new();
    service->sandboxes = sandboxes_new(config->sandbox_idle_ms, config->sandboxes_per_address);
    service->board = board_new((int64_t)time(NULL) * 1000);
    if (!service->runs || !service->responses || !service->sandboxes || !service->board ||
        !order_pipeline_start(&service->orders)) {
        log_line(
            LOG_ERROR,
            "the system has too little memory, or allows no more threads; free some memory, or lower --workers");
        return false;
    }
    char code[CLASS_CODE_SIZE];
    if (config->classroom)
        sandboxes_new_code(service->sandboxes, code);
    if (!workers_start(service)) {
        log_line(
            LOG_ERROR,
            "the system has too little memory, or allows no more threads; free some memory, or lower --workers");
        order_pipeline_stop(&service->orders);
        return false;
    }
    char error[200] = "out of memory";
    /* A limit that cannot be reached is none, neither for the calls: the address is that of a proxy. */
    bool is_proxied = config->connections_per_address >= config->connections;
    int64_t per_address = is_proxied ? 0 : config->connections_per_address;
    const struct http_options options = {
        .address = (const struct sockaddr *)&config->address,
        .address_size = config->address_size,
        .threads = (unsigned)config->http_threads,
        .connections = (unsigned)config->connections,
        .connections_per_address = (unsigned)(per_address || is_proxied ? per_address
                                                                        : (config->connections + 3) / 4),
        .connections_of_loopback = (unsigned)per_address,
        .calls_per_address = {[HTTP_CALL_ORDER] = orders_per_address(config),
                              [HTTP_CALL_SEARCH] = SEARCHES_OF_ADDRESS,
                              [HTTP_CALL_OTHER] = CALLS_OF_ADDRESS},
        .request_timeout_ms = config->request_timeout_ms,
        .first_byte_ms = config->first_byte_ms,
        .idle_timeout_ms = config->idle_timeout_ms,
        .dispatch = service_dispatch,
        .refuse = service_refuse,
        .app = service,
    };
    service->http = http_start(&options, error, sizeof error);
    if (service->http)
        return true;
    log_line(LOG_ERROR, "cannot listen on %s: %s. Choose another address with --listen", config->listen,
             error);
    (void)workers_stop(service);
    order_pipeline_stop(&service->orders);
    return false;
}

/* Takes no new connections, refuses new requests, and waits until the others are answered. A load run sends requests. So it is
 * ended first, while it can still restore the strategy that it has switched. */
static void drain(struct service *service)
{
    runs_stop(service->runs);
    http_stop_listening(service->http);
    atomic_store(&service->draining, true);
    const struct admission_load load = admission_load(service->orders.queue, 0);
    log_line(LOG_INFO, "draining: %zu orders run, %zu wait", load.placing,
             load.held + load.ready); /* logged once draining is set: tests wait for this line */
    int64_t drain_ms = service->config.order_timeout_ms + DRAIN_EXTRA_MS;
    int unread, left = http_drain(service->http, drain_ms, &unread);
    int late = left - unread - atomic_load(&service->holds); /* locks held by hand are logged below */
    if (unread > 0)
        log_line(LOG_WARNING, "%d clients did not read their replies in time", unread);
    if (late > 0)
        log_line(LOG_WARNING,
                 "%d calls had no reply after %lld ms; the service refuses those that still wait", late,
                 (long long)drain_ms);
    bool ended = workers_stop(service);
    order_pipeline_stop(&service->orders);
    (void)http_drain(service->http, LAST_REPLIES_MS, &unread);
    if (!ended) { /* a wait for a lock that somebody holds elsewhere cannot be cut short */
        log_line(LOG_WARNING, "some calls of POST /locks/NAME/hold still waited for a lock");
        _exit(0);
    }
    http_stop(service->http);
    order_pipeline_free(&service->orders);
    runs_free(service->runs);
    response_cache_free(service->responses);
    sandboxes_free(service->sandboxes);
    board_free(service->board);
}

/* Prints the class's address and secrets for the teacher, who sits at this terminal. The log must not contain them. */
static void announce_class(const struct service *service, unsigned port)
{
    char code[CLASS_CODE_SIZE];
    sandboxes_code(service->sandboxes, code);
    json_t *addresses = addresses_for_others(&service->config, port);
    const char *first = json_string_value(json_array_get(addresses, 0));
    if (first && is_in_container())
        printf(
            "Classroom on port %u of this container. Learners open the page at an address of the machine that runs the container.\n",
            port);
    else if (first)
        printf("Classroom on port %u of this machine, for example at %s/\n", port, first);
    else
        printf(
            "Classroom on port %u, reachable only from this machine. For a class, start it with --listen 0.0.0.0:%u.\n",
            port, port);
    printf("  class code       %s\n", code);
    if (service->config.token_made)
        printf("  teacher's token  %s\n", service->config.admin_token);
    fflush(stdout);
    json_decref(addresses);
}

int main(int argc, char *argv[])
{
    /* As many arenas as threads would keep the memory of a thousand waiting orders several times. */
    mallopt(M_ARENA_MAX, 2);
    static struct service service;
    struct config *config = &service.config;
    /* Kept to the end, also by a compiler: the configuration points into it. */
    static char **volatile arguments;
    arguments = hide_passwords(argc, argv);
    if (!arguments) {
        fprintf(stderr, "order-service: out of memory\n");
        return 1;
    }
    char error[400];
    if (!strategies_validate(error, sizeof error)) {
        fprintf(stderr, "order-service: %s\n", error);
        return 2;
    }
    switch (config_load(argc, arguments, config, stderr)) {
    case CONFIG_OK: break;
    case CONFIG_HELP: config_print_help(stdout); return 0;
    case CONFIG_BAD: return 2;
    }
    enum log_level level = LOG_ERROR;
    while (strcmp(log_level_names[level], config->log_level) != 0)
        level++;
    lock_configure(&(struct lock_config){
        .database_url = config->lock_database_url,
        .redis_url = config->redis_url,
        .redlock_urls = config->redlock_urls,
        .zookeeper_connect = config->zookeeper_connect,
        .etcd_endpoints = config->etcd_endpoints,
        .prefix = config->lock_prefix,
        .separate_shops = config->classroom != 0,
    });
    log_setup(level, strcmp(config->log_format, "json") == 0, service.instance);
    if (config->instance[0])
        snprintf(service.instance, sizeof service.instance, "%s", config->instance);
    else
        snprintf(service.instance, sizeof service.instance, "order-service-%d", (int)getpid());
    srandom((unsigned)monotonic_us());
    raise_descriptor_limit(config);

    /* Blocked before any thread is started, so that only sigwait below takes them. */
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);

    if (!start(&service))
        return 1;
    unsigned port = http_port(service.http);
    atomic_store(&service.port, port);
    log_line(LOG_INFO, "listening on port %u, strategy %s, %lld workers", port, config->strategy,
             (long long)config->workers);
    if (config->classroom)
        announce_class(&service, port);
    bool announced = !config->port_file[0] || write_port(config->port_file, port);
    int signal_number;
    if (announced)
        sigwait(&signals, &signal_number);
    else
        log_line(LOG_ERROR, "cannot write %s: %s", config->port_file, strerror(errno));
    drain(&service);
    log_line(LOG_INFO, "stopped");
    return announced ? 0 : 1;
}
