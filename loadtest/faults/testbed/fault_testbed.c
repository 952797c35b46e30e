/* The testbed of a fault run: two services on a private stack, with proxies between them and their servers if a fault needs some. */
#include "loadtest/faults/testbed/fault_testbed.h"

#include "base/clock.h"
#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define SERVICE_DOWN_MS 60000
#define POLL_MS 10
#define DB_PATIENCE_US INT64_C(30000000)
#define FILES 8192
#define WORKERS "48" /* so that an order of every strategy can run at the same time */
/* Each worker of both services has its own session, and one for each of its locks in the database. */
#define SESSIONS "700"

/* ---- the database -------------------------------------------------------------------------------------- */

struct db *fault_db(struct fault_testbed *testbed)
{
    int64_t end_us = monotonic_us() + DB_PATIENCE_US;
    db_set_deadline(testbed->db, end_us, end_us);
    while (monotonic_us() < end_us && !interrupted()) {
        if (db_ready(testbed->db) == DB_OK && db_ping(testbed->db) == DB_OK)
            return testbed->db;
        (void)sleep_unless_interrupted(POLL_MS);
    }
    if (!interrupted())
        complain("the database does not answer: %s", db_error(testbed->db));
    return NULL;
}

PGresult *fault_ask(struct fault_testbed *testbed, const struct statement *statement,
                    const char *const *values)
{
    struct db *db = fault_db(testbed);
    PGresult *rows = NULL;
    if (db && db_run(db, statement, values, &rows) != DB_OK) {
        complain("%s", db_error(db));
        return NULL;
    }
    return rows;
}

/* ---- the services -------------------------------------------------------------------------------------- */

static const char *address_of(const struct fault_testbed *testbed, int server)
{
    struct lock_config addresses = testbed->base.addresses;
    return *server_address(&addresses, (enum stack_server)server);
}

static bool launch(struct fault_testbed *testbed, int i)
{
    char ttl[24], wait[24], order[24], file[40], reason[256];
    struct shim_environment clock;
    struct lock_config addresses = testbed->base.addresses;
    for (int server = 0; server < STACK_SERVERS; server++)
        if (testbed->proxied_addresses[server] && !(testbed->plan.proxied_one && i > 0))
            *server_address(&addresses, (enum stack_server)server) = testbed->proxied_addresses[server];
    snprintf(file, sizeof file, "clock-service-%d", i + 1);
    bool has_clock = testbed->plan.clocks && /* without the shim the fault is reported as not available */
                     shim_prepare(&testbed->base, &clock_shim, file, &clock, reason, sizeof reason);
    snprintf(ttl, sizeof ttl, "%" PRId64, testbed->plan.ttl_ms);
    snprintf(wait, sizeof wait, "%" PRId64, testbed->plan.wait_ms);
    snprintf(order, sizeof order, "%" PRId64, testbed->plan.order_ms);
    const struct service_plan plan = {
        .words = (const char *[]){"--workers", WORKERS, "--lock-ttl-ms", ttl, "--lock-wait-ms", wait,
                                  "--order-timeout-ms", order, "--log-level", "error", NULL},
        .env = has_clock ? clock.variables : (const char *[]){NULL},
        .addresses = &addresses,
        .death_signal = SIGKILL, /* SIGTERM would not end one that SIGSTOP has stopped */
    };
    return testbed_start_service(&testbed->base, (size_t)i, &plan) &&
           testbed_await_service(&testbed->base, (size_t)i);
}

/* Tells clients the service's URL. A client may be reading it, so it is not written again if it has not changed. */
static void tell_clients(struct fault_testbed *testbed, int i)
{
    struct proxy *proxy = testbed->proxies[BACKEND_HTTP][i];
    int port = (int)testbed->base.ports[i];
    char url[64];
    if (proxy)
        proxy_aim(proxy, port);
    snprintf(url, sizeof url, "http://127.0.0.1:%d", proxy ? proxy_port(proxy) : port);
    if (strcmp(url, testbed->urls[i]) != 0)
        memcpy(testbed->urls[i], url, sizeof testbed->urls[i]);
}

bool fault_clock_set(struct fault_testbed *testbed, const char *name, int64_t seconds)
{
    char file[40];
    snprintf(file, sizeof file, "clock-%s", name);
    return shim_set(&testbed->base, file, "the clock", &seconds, sizeof seconds);
}

bool fault_service_start(struct fault_testbed *testbed, int i)
{
    if (!launch(testbed, i))
        return false;
    tell_clients(testbed, i);
    return true;
}

void fault_service_kill(struct fault_testbed *testbed, int i)
{
    child_signal(&testbed->base.services[i], SIGKILL);
    (void)child_wait(&testbed->base.services[i], SERVICE_DOWN_MS, false);
}

/* ---- the proxies --------------------------------------------------------------------------------------- */

static void close_proxies(struct fault_testbed *testbed)
{
    for (int backend = 0; backend < BACKENDS; backend++) {
        for (int i = 0; i < SERVERS_OF_A_KIND; i++) {
            proxy_close(testbed->proxies[backend][i]);
            testbed->proxies[backend][i] = NULL;
        }
    }
    for (int server = 0; server < STACK_SERVERS; server++) {
        free(testbed->proxied_addresses[server]);
        testbed->proxied_addresses[server] = NULL;
    }
}

/* Opens a proxy for each server in the address, which may be a list with commas, and writes the list of the proxies' addresses. */
static bool open_proxies_before(struct fault_testbed *testbed, enum stack_server server)
{
    static const char HOST[] = "127.0.0.1:";
    const char *rest = address_of(testbed, (int)server), *at;
    char *text = NULL;
    size_t size, count = 0;
    FILE *out = open_memstream(&text, &size);
    bool ok = out;
    while (ok && (at = strstr(rest, HOST))) {
        at += sizeof HOST - 1;
        struct proxy *proxy = count < SERVERS_OF_A_KIND ? proxy_open(atoi(at)) : NULL;
        ok = proxy;
        if (!proxy)
            break;
        testbed->proxies[server][count++] = proxy;
        fprintf(out, "%.*s%d", (int)(at - rest), rest, proxy_port(proxy));
        rest = at + strspn(at, "0123456789");
    }
    if (out)
        fputs(rest, out);
    if (!out || fclose(out) != 0 || !ok) {
        free(text);
        complain("cannot put a proxy before %s", server_variable(server));
        return false;
    }
    testbed->proxied_addresses[server] = text;
    return true;
}

/* Each worker of both services keeps a connection for every lock that it has used, and a proxy needs two files for each. */
static bool may_open_files(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return true;
    limit.rlim_cur = limit.rlim_max;
    if (limit.rlim_max >= FILES && setrlimit(RLIMIT_NOFILE, &limit) == 0)
        return true;
    complain("the proxies need %d open files: raise the limit (ulimit -Hn)", FILES);
    return false;
}

static bool open_proxies(struct fault_testbed *testbed, unsigned proxied)
{
    if (proxied && !may_open_files())
        return false;
    for (int server = 0; server < STACK_SERVERS; server++)
        if ((proxied & 1u << server) && *address_of(testbed, server) &&
            !open_proxies_before(testbed, (enum stack_server)server))
            return false;
    for (int i = 0; (proxied & 1u << BACKEND_HTTP) && i < FAULT_INSTANCES; i++)
        if (!(testbed->proxies[BACKEND_HTTP][i] = proxy_open(0)))
            return false;
    return true;
}

void fault_proxies_set(struct fault_testbed *testbed, unsigned before, const struct proxy_rules *rules)
{
    for (int backend = 0; backend < BACKENDS; backend++)
        for (int i = 0; (before & 1u << backend) && i < SERVERS_OF_A_KIND; i++)
            if (testbed->proxies[backend][i])
                proxy_set(testbed->proxies[backend][i], rules);
}

void fault_proxies_cut(struct fault_testbed *testbed, unsigned before)
{
    for (int backend = 0; backend < BACKENDS; backend++)
        for (int i = 0; (before & 1u << backend) && i < SERVERS_OF_A_KIND; i++)
            if (testbed->proxies[backend][i])
                proxy_cut(testbed->proxies[backend][i]);
}

static bool has_acted(struct proxy *proxy)
{
    return proxy_acted(proxy) > 0;
}

static unsigned backends_where(const struct fault_testbed *testbed, bool (*is_so)(struct proxy *proxy))
{
    unsigned backends = 0;
    for (int backend = 0; backend < BACKENDS; backend++)
        for (int i = 0; i < SERVERS_OF_A_KIND; i++)
            if (testbed->proxies[backend][i] && is_so(testbed->proxies[backend][i]))
                backends |= 1u << backend;
    return backends;
}

unsigned fault_proxies_carrying(const struct fault_testbed *testbed)
{
    return backends_where(testbed, proxy_carries);
}

unsigned fault_proxies_acted(const struct fault_testbed *testbed)
{
    return backends_where(testbed, has_acted);
}

bool fault_testbed_arrange(struct fault_testbed *testbed, const struct fault_testbed_plan *plan)
{
    testbed_stop_services(&testbed->base);
    close_proxies(testbed);
    testbed->plan = *plan;
    if (!open_proxies(testbed, plan->proxied))
        return false;
    for (int i = 0; i < FAULT_INSTANCES; i++) {
        char name[24];
        snprintf(name, sizeof name, "service-%d", i + 1);
        if ((plan->clocks && !fault_clock_set(testbed, name, 0)) || !fault_service_start(testbed, i))
            return false;
    }
    return true;
}

/* ---- opening and closing ------------------------------------------------------------------------------- */

bool fault_testbed_open(const char *list, struct fault_testbed *ret_testbed)
{
    *ret_testbed = (struct fault_testbed){0};
    struct testbed_settings settings = {.database = true, .strategies = list, .servers = "private"};
    /* The stack's default is for two services of an ordinary size. Clients name a strategy in each order without an admin token. */
    if (setenv("OVERSELL_MAX_CONNECTIONS", SESSIONS, 1) != 0 || unsetenv("ADMIN_TOKEN") != 0) {
        complain("out of memory");
        return false;
    }
    if (!testbed_open(&settings, &ret_testbed->base))
        return false;
    ret_testbed->base.count = FAULT_INSTANCES;
    ret_testbed->db = db_new(ret_testbed->base.addresses.database_url, "oversell judge");
    if (ret_testbed->db && fault_db(ret_testbed))
        return true;
    fault_testbed_close(ret_testbed);
    return false;
}

void fault_testbed_close(struct fault_testbed *testbed)
{
    testbed_stop_services(&testbed->base);
    close_proxies(testbed);
    db_free(testbed->db);
    testbed_close(&testbed->base);
    *testbed = (struct fault_testbed){0};
}
