/* The testbed of a load test: services that it starts on a private stack of servers, or services that run already. */
#include "loadtest/testbed/testbed.h"

#include "base/clock.h"
#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/testbed/paths.h"
#include "loadtest/testbed/preload.h"
#include "loadtest/testbed/servers.h"
#include "loadtest/testbed/stack.h"

#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define SERVICE_UP_MS 60000
#define SERVICE_DOWN_MS 60000
#define POLL_MS 20
#define TAIL_LINES 20
#define WORDS_MAX 24
#define ADDRESS_MAX 1024
#define ROOM_MB 64 /* what one server, etcd, asks of the disk at once */

static const char *const SERVER_CHOICES[] = {"private", "environment", NULL};

static const struct option_row ROWS[] = {
    {"--url", "URL", OPTION_TEXTS, offsetof(struct testbed_settings, urls), 0, 0, NULL,
     "Use the running service at http://HOST:PORT. Repeat the option for each instance on the same "
     "database. Set ADMIN_TOKEN if the service needs one."},
    {"--instances", "N", OPTION_NUMBER, offsetof(struct testbed_settings, instances), 1, INSTANCES_MAX, NULL,
     "Service processes that share one database. With --url and --servers environment, the command "
     "starts those that --url does not name."},
    {"--workers", "N", OPTION_NUMBER, offsetof(struct testbed_settings, workers), 0, 1024, NULL,
     "Worker threads of each service that the command starts. 0: the default of the service."},
    {"--product-limit", "N", OPTION_NUMBER, offsetof(struct testbed_settings, product_limit), 0, 256, NULL,
     "Orders of one product that each service processes at the same time. 0: no limit."},
    {"--servers", "WHICH", OPTION_CHOICE, offsetof(struct testbed_settings, servers), 0, 0, SERVER_CHOICES,
     "Database and lock servers for the services that the command starts. private: the command starts "
     "them too. environment: those in DATABASE_URL, REDIS_URL, REDLOCK_URLS, ZOOKEEPER_CONNECT and "
     "ETCD_ENDPOINTS."},
};

const struct option_rows testbed_options = OPTION_ROWS("Services", ROWS);

static bool uses_private_stack(const struct testbed_settings *settings)
{
    return strcmp(settings->servers, "private") == 0;
}

/* ---- settings ------------------------------------------------------------------------------------------ */

/* http://HOST:PORT, with a slash behind it at most: what both curl and wrk take, and what has no room for
 * more. */
static bool is_service_url(const char *url)
{
    static const char SCHEME[] = "http://";
    if (strncmp(url, SCHEME, sizeof SCHEME - 1) != 0)
        return false;
    const char *host = url + sizeof SCHEME - 1;
    const char *host_end = *host == '[' ? strchr(host, ']') : host + strcspn(host, ":/?#@");
    if (*host == '[' && host_end)
        host_end++;
    if (!host_end || host_end == host || *host_end != ':')
        return false;
    size_t digits = strspn(host_end + 1, "0123456789");
    const char *rest = host_end + 1 + digits;
    return digits > 0 && digits <= 5 && (!*rest || strcmp(rest, "/") == 0);
}

/* Services of ours, beside any that are given. */
static bool starts_services(const struct testbed_settings *settings)
{
    return settings->urls.count == 0 ||
           (!uses_private_stack(settings) && settings->instances > (int64_t)settings->urls.count);
}

bool testbed_settings_valid(const struct testbed_settings *settings)
{
    for (size_t i = 0; i < settings->urls.count; i++)
        if (!is_service_url(settings->urls.item[i])) {
            complain("--url '%s' is not valid (valid: http://HOST:PORT without a path)",
                     settings->urls.item[i]);
            return false;
        }
    size_t urls = settings->urls.count;
    if (!starts_services(settings) && settings->instances != settings->instances_default &&
        settings->instances != (int64_t)urls) {
        complain("--instances is %" PRId64
                 ", but --url names %zu: repeat --url for each instance, or let the "
                 "command start the others (--servers environment)",
                 settings->instances, urls);
        return false;
    }
    const char *database = getenv("DATABASE_URL");
    if (starts_services(settings) && !uses_private_stack(settings) && (!database || !*database)) {
        complain("--servers environment needs the address of a database: set DATABASE_URL");
        return false;
    }
    return true;
}

/* ---- the services -------------------------------------------------------------------------------------- */

/* A file of service I: its "log", or the "port" that it writes down. */
static void file_of(const struct testbed *testbed, size_t i, const char *kind, char *ret_path)
{
    snprintf(ret_path, PATH_MAX + 48, "%s/service-%zu.%s", testbed->dir, i + 1, kind);
}

bool testbed_start_service(struct testbed *testbed, size_t i, const struct service_plan *plan)
{
    char program[PATH_MAX], log[PATH_MAX + 48], port_file[PATH_MAX + 48], listen[40], name[32];
    char variables[STACK_SERVERS][ADDRESS_MAX];
    const char *argv[WORDS_MAX] = {program, "--listen", listen, "--port-file", port_file, "--instance", name};
    const char *env[WORDS_MAX] = {"ADMIN_TOKEN_FILE", "LOCK_DATABASE_URL"};
    size_t argc = 7, count = plan->addresses ? 2 : 0;
    if (!path_of(PATH_SERVICE, program))
        return false;
    file_of(testbed, i, "log", log);
    file_of(testbed, i, "port", port_file);
    snprintf(listen, sizeof listen, "127.0.0.1:%" PRId64, testbed->ports[i]);
    snprintf(name, sizeof name, "service-%zu", i + 1);
    for (size_t j = 0; plan->words[j] && argc < WORDS_MAX - 1; j++)
        argv[argc++] = plan->words[j];
    /* Addresses of other servers, left in the user's environment, are not passed on. */
    for (size_t j = 0; plan->addresses && j < STACK_SERVERS; j++) {
        struct lock_config addresses = *plan->addresses;
        const char *address = *server_address(&addresses, (enum stack_server)j);
        snprintf(variables[j], ADDRESS_MAX, "%s%s%s", server_variable((enum stack_server)j),
                 *address ? "=" : "", address);
        env[count++] = variables[j];
    }
    for (size_t j = 0; plan->env && plan->env[j] && count < WORDS_MAX - 1; j++)
        env[count++] = plan->env[j];
    (void)unlink(port_file);
    const struct child_plan child = {
        .argv = argv, .env = env, .log = log, .death_signal = plan->death_signal};
    if (child_start(&child, &testbed->services[i]))
        return true;
    complain("cannot start a process: %s", strerror(errno));
    return false;
}

/* Says that service I has died if it has. */
static bool is_alive(struct testbed *testbed, size_t i)
{
    struct child *service = &testbed->services[i];
    if (service->pid != 0 && !child_ended(service))
        return true;
    char status[64], log[PATH_MAX + 48];
    file_of(testbed, i, "log", log);
    complain("service-%zu has died (%s); the last lines of its log:", i + 1,
             child_status_text(service, status));
    print_log_tail(log, TAIL_LINES);
    return false;
}

bool testbed_alive(struct testbed *testbed)
{
    for (size_t i = testbed->given; i < testbed->count; i++)
        if (!is_alive(testbed, i))
            return false;
    return true;
}

/* What a service has written into its port file; false if it has not yet. */
static bool read_port(const char *path, int64_t *ret_port)
{
    char text[16] = "";
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    bool got = fgets(text, sizeof text, file) != NULL;
    fclose(file);
    text[strcspn(text, "\n")] = 0;
    return got && parse_number(text, ret_port) && *ret_port > 0 && *ret_port < 65536;
}

bool testbed_await_service(struct testbed *testbed, size_t i)
{
    char port_file[PATH_MAX + 48], log[PATH_MAX + 48], url[64];
    int64_t end = monotonic_us() + (int64_t)SERVICE_UP_MS * 1000;
    bool listens = false;
    file_of(testbed, i, "port", port_file);
    file_of(testbed, i, "log", log);
    while (monotonic_us() < end && sleep_unless_interrupted(POLL_MS) && is_alive(testbed, i)) {
        if (!listens && read_port(port_file, &testbed->ports[i])) {
            listens = true;
            snprintf(url, sizeof url, "http://127.0.0.1:%" PRId64, testbed->ports[i]);
            service_client_close(testbed->clients[i]);
            testbed->clients[i] = service_client_open(url, getenv("ADMIN_TOKEN"));
            if (!testbed->clients[i]) {
                complain("out of memory");
                return false;
            }
        }
        if (listens && service_client_ready(testbed->clients[i]))
            return true;
    }
    if (interrupted() || monotonic_us() < end)
        return false;
    complain("service-%zu is not ready after %d s: %s", i + 1, SERVICE_UP_MS / 1000,
             listens ? service_client_error(testbed->clients[i]) : "it does not listen yet");
    print_log_tail(log, TAIL_LINES);
    return false;
}

void testbed_stop_services(struct testbed *testbed)
{
    for (size_t i = testbed->given; i < testbed->count; i++) {
        child_signal(&testbed->services[i], SIGCONT);
        child_signal(&testbed->services[i], SIGTERM); /* all at once, so that they drain side by side */
    }
    for (size_t i = testbed->given; i < testbed->count; i++)
        child_stop(&testbed->services[i], SERVICE_DOWN_MS);
}

/* ---- opening and closing ------------------------------------------------------------------------------- */

static bool use_services(struct testbed *testbed, const struct texts *urls)
{
    for (testbed->count = 0; testbed->count < urls->count; testbed->count++) {
        struct service_client *client = service_client_open(urls->item[testbed->count],
                                                            getenv("ADMIN_TOKEN"));
        if (!client) {
            complain("out of memory");
            return false;
        }
        testbed->clients[testbed->count] = client;
        testbed->given++;
        if (!service_client_ready(client)) {
            if (!interrupted())
                complain("the service of --url is not ready: %s", service_client_error(client));
            testbed->count++;
            return false;
        }
    }
    return true;
}

/* /var/tmp lies on a disk where /tmp may be memory, and a database that syncs to memory would flatter
 * itself. */
static bool make_dir(struct testbed *testbed)
{
    const char *parent = getenv("TMPDIR");
    /* When root runs us, the private servers run as other users, which need access to the folder. */
    if (!parent || !*parent || (geteuid() == 0 && !others_can_enter(parent)))
        parent = "/var/tmp";
    if (snprintf(testbed->dir, sizeof testbed->dir - 32, "%s/oversell-XXXXXX", parent) <
            (int)sizeof testbed->dir - 32 &&
        mkdtemp(testbed->dir) && chmod(testbed->dir, 0755) == 0)
        return true;
    complain("cannot create a folder in %s: %s; set TMPDIR to another folder", parent, strerror(errno));
    testbed->dir[0] = 0;
    return false;
}

static bool start_services(struct testbed *testbed, const struct testbed_settings *settings)
{
    bool own_stack = uses_private_stack(settings);
    if (((own_stack || settings->instances > 0) && !make_dir(testbed)) ||
        (own_stack && !stack_open(testbed, settings)))
        return false;
    char workers[24], limit[24];
    snprintf(workers, sizeof workers, "%" PRId64, settings->workers);
    snprintf(limit, sizeof limit, "%" PRId64, settings->product_limit);
    const struct service_plan plan = {
        .words = (const char *[]){"--product-limit", limit, settings->workers > 0 ? "--workers" : NULL,
                                  workers, NULL},
        .addresses = own_stack ? &testbed->addresses : NULL,
        .death_signal = SIGTERM,
    };
    for (; testbed->count < (size_t)settings->instances; testbed->count++)
        if (!testbed_start_service(testbed, testbed->count, &plan))
            return false;
    for (size_t i = testbed->given; i < testbed->count; i++)
        if (!testbed_await_service(testbed, i))
            return false;
    return true;
}

bool testbed_open(const struct testbed_settings *settings, struct testbed *ret_testbed)
{
    *ret_testbed = (struct testbed){0};
    if (use_services(ret_testbed, &settings->urls) &&
        (!starts_services(settings) || start_services(ret_testbed, settings)))
        return true;
    testbed_close(ret_testbed);
    return false;
}

void testbed_explain_full_disk(const struct testbed *testbed)
{
    struct statvfs disk;
    if (!testbed->dir[0] || statvfs(testbed->dir, &disk) != 0)
        return;
    uintmax_t free_mb = (uintmax_t)disk.f_bavail * disk.f_frsize >> 20;
    if (free_mb < ROOM_MB)
        complain(
            "the disk of %s is full (%ju MB free). Free 300 MB, or set TMPDIR to a folder that has room, then run "
            "this again",
            testbed->dir, free_mb);
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *where)
{
    (void)status, (void)type, (void)where;
    return remove(path);
}

void testbed_close(struct testbed *testbed)
{
    for (size_t i = 0; i < testbed->count; i++)
        service_client_close(testbed->clients[i]);
    testbed_stop_services(testbed);
    stack_close(testbed);
    if (testbed->dir[0] && nftw(testbed->dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS) != 0)
        complain("cannot remove %s: %s", testbed->dir, strerror(errno));
    *testbed = (struct testbed){0};
}
