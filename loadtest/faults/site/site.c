/* Where faults are made: the services on the private stack, with or without proxies between them and their servers. */
#include "loadtest/faults/site/site.h"

#include "base/clock.h"
#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/testbed/addresses.h"
#include "loadtest/testbed/paths.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define SERVICE_UP_MS 60000
#define SERVICE_DOWN_MS 60000
#define POLL_MS 10
#define TAIL_LINES 15
#define DB_PATIENCE_US INT64_C(30000000)
#define FILES 8192
#define WORKERS "48" /* an order of every strategy at the same time */
/* Two services whose workers each have a session of their own, and one for every lock of theirs in the database. */
#define SESSIONS "700"

static const char *const VARIABLES[BACKENDS] = {
    [BACKEND_POSTGRES] = "DATABASE_URL", [BACKEND_REDIS] = "REDIS_URL",
    [BACKEND_REDLOCK] = "REDLOCK_URLS",  [BACKEND_ZOOKEEPER] = "ZOOKEEPER_CONNECT",
    [BACKEND_ETCD] = "ETCD_ENDPOINTS",   [BACKEND_HTTP] = NULL,
};

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

static const char *address_of(const struct site *site, enum backend backend)
{
    const char *direct[BACKENDS] = {
        [BACKEND_POSTGRES] = site->addresses.database_url,
        [BACKEND_REDIS] = site->addresses.redis_url,
        [BACKEND_REDLOCK] = site->addresses.redlock_urls,
        [BACKEND_ZOOKEEPER] = site->addresses.zookeeper_connect,
        [BACKEND_ETCD] = site->addresses.etcd_endpoints,
        [BACKEND_HTTP] = "",
    };
    return direct[backend];
}

/* As service I is to reach it. */
static const char *address_for(const struct site *site, enum backend backend, int i)
{
    bool direct = !site->proxied_addresses[backend] || (site->plan.proxied_one && i > 0);
    return direct ? address_of(site, backend) : site->proxied_addresses[backend];
}

static bool launch(struct site *site, int i, const char *port_file, const char *log)
{
    struct site_service *service = &site->services[i];
    char program[PATH_MAX], listen[40], name[24], ttl[24], wait[24], order[24], text[BACKENDS][1024];
    const char *env[BACKENDS + 5] = {"ADMIN_TOKEN", "ADMIN_TOKEN_FILE", "LOCK_DATABASE_URL"};
    char shim[PATH_MAX], preload[PATH_MAX + 16], clock[PATH_MAX + 48];
    size_t count = 3;
    if (!path_of_service(program))
        return false;
    for (int backend = 0; backend < BACKENDS; backend++) {
        if (!VARIABLES[backend])
            continue;
        snprintf(text[backend], sizeof text[backend], "%s=%s", VARIABLES[backend],
                 address_for(site, (enum backend)backend, i));
        env[count++] = text[backend];
    }
    if (site->plan.clocks && path_of_clock(shim)) { /* without one the fault is not possible, and says so */
        snprintf(preload, sizeof preload, "LD_PRELOAD=%s", shim);
        snprintf(clock, sizeof clock, "OVERSELL_CLOCK=%s/clock-service-%d", site->lab.dir, i + 1);
        env[count++] = preload;
        env[count++] = clock;
    }
    snprintf(listen, sizeof listen, "127.0.0.1:%" PRId64, service->port);
    snprintf(name, sizeof name, "service-%d", i + 1);
    snprintf(ttl, sizeof ttl, "%" PRId64, site->plan.ttl_ms);
    snprintf(wait, sizeof wait, "%" PRId64, site->plan.wait_ms);
    snprintf(order, sizeof order, "%" PRId64, site->plan.order_ms);
    const char *argv[] = {
        program, "--listen",           listen,  "--port-file",   port_file, "--instance",
        name,    "--workers",          WORKERS, "--lock-ttl-ms", ttl,       "--lock-wait-ms",
        wait,    "--order-timeout-ms", order,   "--log-level",   "error",   NULL};
    struct child_plan plan = {.argv = argv, .env = env, .log = log, .death_signal = SIGKILL};
    return child_start(&plan, &service->child);
}

/* Notes where it listens, and opens what talks to it. */
static bool meet(struct site_service *service, int64_t port)
{
    char url[64];
    snprintf(url, sizeof url, "http://127.0.0.1:%" PRId64, port);
    service_client_close(service->client);
    service->port = port;
    service->client = service_client_open(url, NULL);
    return service->client;
}

/* Where clients find it from now on. They may be reading that, so what stays the same is not written again. */
static void tell_clients(struct site *site, int i)
{
    struct site_service *service = &site->services[i];
    struct proxy *proxy = site->proxies[BACKEND_HTTP][i];
    char url[64];
    if (proxy)
        proxy_aim(proxy, (int)service->port);
    snprintf(url, sizeof url, "http://127.0.0.1:%d", proxy ? proxy_port(proxy) : (int)service->port);
    if (strcmp(url, service->url) != 0)
        memcpy(service->url, url, sizeof service->url);
}

bool site_start_service(struct site *site, int i)
{
    struct site_service *service = &site->services[i];
    char port_file[PATH_MAX + 40], log[PATH_MAX + 40];
    int64_t port, end_us = monotonic_us() + (int64_t)SERVICE_UP_MS * 1000;
    bool met = false;
    snprintf(port_file, sizeof port_file, "%s/service-%d.port", site->lab.dir, i + 1);
    snprintf(log, sizeof log, "%s/service-%d.log", site->lab.dir, i + 1);
    (void)unlink(port_file);
    if (!launch(site, i, port_file, log)) {
        complain("cannot start a service");
        return false;
    }
    while (monotonic_us() < end_us && sleep_unless_interrupted(POLL_MS) && !child_ended(&service->child)) {
        if (!met && lab_read_port(port_file, &port))
            met = meet(service, port);
        if (met && service_client_ready(service->client)) {
            tell_clients(site, i);
            return true;
        }
    }
    if (interrupted())
        return false;
    char status[64];
    complain("service-%d %s", i + 1,
             service->child.pid == 0 ? child_status_text(&service->child, status)
             : service->client       ? service_client_error(service->client)
                                     : "does not listen");
    print_log_tail(log, TAIL_LINES);
    return false;
}

void site_signal_service(struct site *site, int i, int signal_number)
{
    child_signal(&site->services[i].child, signal_number);
}

void site_kill_service(struct site *site, int i)
{
    child_signal(&site->services[i].child, SIGKILL);
    (void)child_wait(&site->services[i].child, SERVICE_DOWN_MS, false);
}

bool site_mend_services(struct site *site)
{
    for (int i = 0; i < FAULT_INSTANCES; i++)
        if (child_ended(&site->services[i].child) && !site_start_service(site, i))
            return false;
    return true;
}

static void end_services(struct site *site)
{
    for (int i = 0; i < FAULT_INSTANCES; i++)
        site_signal_service(site, i, SIGCONT);
    for (int i = 0; i < FAULT_INSTANCES; i++)
        site_signal_service(site, i, SIGTERM); /* all at once, so that they drain side by side */
    for (int i = 0; i < FAULT_INSTANCES; i++)
        child_stop(&site->services[i].child, SERVICE_DOWN_MS);
}

bool site_set(struct site *site, int i, int64_t think_ms)
{
    struct service_client *client = site->services[i].client;
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
        free(site->proxied_addresses[backend]);
        site->proxied_addresses[backend] = NULL;
    }
}

/* Puts a proxy before each server of an address, or of several with commas between, and writes theirs in its place. */
static bool stand_before(struct site *site, enum backend backend)
{
    static const char HOST[] = "127.0.0.1:";
    const char *rest = address_of(site, backend), *at;
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
        site->proxies[backend][count++] = proxy;
        fprintf(out, "%.*s%d", (int)(at - rest), rest, proxy_port(proxy));
        rest = at + strspn(at, "0123456789");
    }
    if (out)
        fputs(rest, out);
    if (!out || fclose(out) != 0 || !well) {
        free(text);
        complain("cannot put a proxy before %s", VARIABLES[backend]);
        return false;
    }
    site->proxied_addresses[backend] = text;
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
    for (int backend = 0; backend < BACKEND_HTTP; backend++)
        if ((proxied & 1u << backend) && *address_of(site, (enum backend)backend) &&
            !stand_before(site, (enum backend)backend))
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
    end_services(site);
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
    struct lab_settings settings = {.database = true, .strategies = list, .servers = "private"};
    /* For every start of the private stack by this process: its own setting is for two services of an ordinary size. */
    if (setenv("OVERSELL_MAX_CONNECTIONS", SESSIONS, 1) != 0) {
        complain("out of memory");
        return false;
    }
    if (!lab_open(&settings, &ret_site->lab))
        return false;
    if (lab_stack_dir(&ret_site->lab, ret_site->stack_dir) &&
        addresses_read(&ret_site->lab, &ret_site->addresses) &&
        (ret_site->db = db_new(ret_site->addresses.database_url, "oversell judge")) && site_db(ret_site))
        return true;
    site_close(ret_site);
    return false;
}

void site_close(struct site *site)
{
    end_services(site);
    for (int i = 0; i < FAULT_INSTANCES; i++)
        service_client_close(site->services[i].client);
    close_proxies(site);
    db_free(site->db);
    lab_close(&site->lab);
    *site = (struct site){0};
}
