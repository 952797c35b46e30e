/* Where faults are made: the services on the private stack, with or without proxies between them and their servers. */
#include "loadtest/faults/site/site.h"

#include "base/clock.h"
#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/testbed/paths.h"

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
#define WORKERS "48" /* an order of every strategy at the same time */
/* Two services whose workers each have a session of their own, and one for every lock of theirs in the database. */
#define SESSIONS "700"

/* ---- the database -------------------------------------------------------------------------------------- */

struct db *site_db(struct site *site)
{
    int64_t end_us = monotonic_us() + DB_PATIENCE_US;
    db_set_deadline(site->db, end_us, end_us);
    while (monotonic_us() < end_us && !interrupted()) {
        if (db_ready(site->db) == DB_OK && db_ping(site->db) == DB_OK)
            return site->db;
        (void)sleep_unless_interrupted(POLL_MS);
    }
    if (!interrupted())
        complain("the database does not answer: %s", db_error(site->db));
    return NULL;
}

/* ---- the services -------------------------------------------------------------------------------------- */

static const char *address_of(const struct site *site, int server)
{
    struct lock_config addresses = site->base.addresses;
    return *server_address(&addresses, (enum stack_server)server);
}

static bool launch(struct site *site, int i)
{
    char ttl[24], wait[24], order[24], shim[PATH_MAX], preload[PATH_MAX + 16], clock[PATH_MAX + 48];
    const char *env[] = {NULL, NULL, NULL};
    struct lock_config addresses = site->base.addresses;
    for (int server = 0; server < STACK_SERVERS; server++)
        if (site->proxied_addresses[server] && !(site->plan.proxied_one && i > 0))
            *server_address(&addresses, (enum stack_server)server) = site->proxied_addresses[server];
    if (site->plan.clocks && path_of_clock(shim)) { /* without one the fault is not possible, and says so */
        snprintf(preload, sizeof preload, "LD_PRELOAD=%s", shim);
        snprintf(clock, sizeof clock, "OVERSELL_CLOCK=%s/clock-service-%d", site->base.dir, i + 1);
        env[0] = preload;
        env[1] = clock;
    }
    snprintf(ttl, sizeof ttl, "%" PRId64, site->plan.ttl_ms);
    snprintf(wait, sizeof wait, "%" PRId64, site->plan.wait_ms);
    snprintf(order, sizeof order, "%" PRId64, site->plan.order_ms);
    const struct service_plan plan = {
        .words = (const char *[]){"--workers", WORKERS, "--lock-ttl-ms", ttl, "--lock-wait-ms", wait,
                                  "--order-timeout-ms", order, "--log-level", "error", NULL},
        .env = env,
        .addresses = &addresses,
        .death_signal = SIGKILL, /* SIGTERM would not end one that SIGSTOP has stopped */
    };
    return testbed_start_service(&site->base, (size_t)i, &plan) &&
           testbed_await_service(&site->base, (size_t)i);
}

/* Where clients find it from now on. They may be reading that, so what stays the same is not written again. */
static void tell_clients(struct site *site, int i)
{
    struct proxy *proxy = site->proxies[BACKEND_HTTP][i];
    int port = (int)site->base.ports[i];
    char url[64];
    if (proxy)
        proxy_aim(proxy, port);
    snprintf(url, sizeof url, "http://127.0.0.1:%d", proxy ? proxy_port(proxy) : port);
    if (strcmp(url, site->urls[i]) != 0)
        memcpy(site->urls[i], url, sizeof site->urls[i]);
}

bool site_start_service(struct site *site, int i)
{
    if (!launch(site, i))
        return false;
    tell_clients(site, i);
    return true;
}

void site_kill_service(struct site *site, int i)
{
    child_signal(&site->base.services[i], SIGKILL);
    (void)child_wait(&site->base.services[i], SERVICE_DOWN_MS, false);
}

bool site_mend_services(struct site *site)
{
    for (int i = 0; i < FAULT_INSTANCES; i++)
        if (child_ended(&site->base.services[i]) && !site_start_service(site, i))
            return false;
    return true;
}

bool site_set(struct site *site, int i, int64_t think_ms)
{
    struct service_client *client = site->base.clients[i];
    if (service_client_switch(client, 0, "atomic-decrement", think_ms, SAME_LOCK_WAIT))
        return true;
    if (!interrupted())
        complain("%s", service_client_error(client));
    return false;
}

/* ---- the proxies --------------------------------------------------------------------------------------- */

static void close_proxies(struct site *site)
{
    for (int backend = 0; backend < BACKENDS; backend++) {
        for (int i = 0; i < SERVERS_OF_A_KIND; i++) {
            proxy_close(site->proxies[backend][i]);
            site->proxies[backend][i] = NULL;
        }
    }
    for (int server = 0; server < STACK_SERVERS; server++) {
        free(site->proxied_addresses[server]);
        site->proxied_addresses[server] = NULL;
    }
}

/* Puts a proxy before each server of an address, or of several with commas between, and writes theirs in its place. */
static bool stand_before(struct site *site, enum stack_server server)
{
    static const char HOST[] = "127.0.0.1:";
    const char *rest = address_of(site, (int)server), *at;
    char *text = NULL;
    size_t size, count = 0;
    FILE *out = open_memstream(&text, &size);
    bool well = out;
    while (well && (at = strstr(rest, HOST))) {
        at += sizeof HOST - 1;
        struct proxy *proxy = count < SERVERS_OF_A_KIND ? proxy_open(atoi(at)) : NULL;
        well = proxy;
        if (!proxy)
            break;
        site->proxies[server][count++] = proxy;
        fprintf(out, "%.*s%d", (int)(at - rest), rest, proxy_port(proxy));
        rest = at + strspn(at, "0123456789");
    }
    if (out)
        fputs(rest, out);
    if (!out || fclose(out) != 0 || !well) {
        free(text);
        complain("cannot put a proxy before %s", server_variable(server));
        return false;
    }
    site->proxied_addresses[server] = text;
    return true;
}

/* In the end each worker of both services is connected for every lock that has been asked of it, and a proxy has two files
 * for a connection. */
static bool may_open_files(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return true;
    limit.rlim_cur = limit.rlim_max;
    if (limit.rlim_max >= FILES && setrlimit(RLIMIT_NOFILE, &limit) == 0)
        return true;
    complain("the proxies may not open %d files (ulimit -Hn)", FILES);
    return false;
}

static bool open_proxies(struct site *site, unsigned proxied)
{
    if (proxied && !may_open_files())
        return false;
    for (int server = 0; server < STACK_SERVERS; server++)
        if ((proxied & 1u << server) && *address_of(site, server) &&
            !stand_before(site, (enum stack_server)server))
            return false;
    for (int i = 0; (proxied & 1u << BACKEND_HTTP) && i < FAULT_INSTANCES; i++)
        if (!(site->proxies[BACKEND_HTTP][i] = proxy_open(0)))
            return false;
    return true;
}

void site_set_proxies(struct site *site, unsigned before, const struct proxy_rules *rules)
{
    for (int backend = 0; backend < BACKENDS; backend++)
        for (int i = 0; (before & 1u << backend) && i < SERVERS_OF_A_KIND; i++)
            if (site->proxies[backend][i])
                proxy_set(site->proxies[backend][i], rules);
}

void site_cut_proxies(struct site *site, unsigned before)
{
    for (int backend = 0; backend < BACKENDS; backend++)
        for (int i = 0; (before & 1u << backend) && i < SERVERS_OF_A_KIND; i++)
            if (site->proxies[backend][i])
                proxy_cut(site->proxies[backend][i]);
}

static bool has_acted(struct proxy *proxy)
{
    return proxy_acted(proxy) > 0;
}

static unsigned backends_where(const struct site *site, bool (*is_so)(struct proxy *proxy))
{
    unsigned backends = 0;
    for (int backend = 0; backend < BACKENDS; backend++)
        for (int i = 0; i < SERVERS_OF_A_KIND; i++)
            if (site->proxies[backend][i] && is_so(site->proxies[backend][i]))
                backends |= 1u << backend;
    return backends;
}

unsigned site_carrying(const struct site *site)
{
    return backends_where(site, proxy_carries);
}

unsigned site_acted(const struct site *site)
{
    return backends_where(site, has_acted);
}

bool site_arrange(struct site *site, const struct site_plan *plan)
{
    testbed_stop_services(&site->base);
    close_proxies(site);
    site->plan = *plan;
    if (!open_proxies(site, plan->proxied))
        return false;
    for (int i = 0; i < FAULT_INSTANCES; i++) {
        char name[24];
        snprintf(name, sizeof name, "service-%d", i + 1);
        if ((plan->clocks && !site_set_clock(site, name, 0)) || !site_start_service(site, i))
            return false;
    }
    return true;
}

/* ---- opening and closing ------------------------------------------------------------------------------- */

bool site_open(const char *list, struct site *ret_site)
{
    *ret_site = (struct site){0};
    struct testbed_settings settings = {.database = true, .strategies = list, .servers = "private"};
    /* For every start of the private stack by this process: its own setting is for two services of an ordinary size. Orders
     * name their strategy without an admin token. */
    if (setenv("OVERSELL_MAX_CONNECTIONS", SESSIONS, 1) != 0 || unsetenv("ADMIN_TOKEN") != 0) {
        complain("out of memory");
        return false;
    }
    if (!testbed_open(&settings, &ret_site->base))
        return false;
    ret_site->base.count = FAULT_INSTANCES;
    ret_site->db = db_new(ret_site->base.addresses.database_url, "oversell judge");
    if (ret_site->db && site_db(ret_site))
        return true;
    site_close(ret_site);
    return false;
}

void site_close(struct site *site)
{
    testbed_stop_services(&site->base);
    close_proxies(site);
    db_free(site->db);
    testbed_close(&site->base);
    *site = (struct site){0};
}
