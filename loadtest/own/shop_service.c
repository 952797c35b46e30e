/* Starts a user's service, in one or more instances, with the private servers that it needs, and stops all of them. */
#include "loadtest/own/shop_service.h"

#include "base/clock.h"
#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/own/shop_database.h"
#include "loadtest/own/shop_http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    POLL_MS = 20,
    READY_MS = 2000, /* for one question whether it is ready */
    STOP_MS = 5000,
    KILL_MS = 5000,
    TAIL_LINES = 20,
    LOG_MAX_BYTES = 16 << 20
};

/* ---- the servers --------------------------------------------------------------------------------------- */

static bool load_schema(const char *postgres, const struct shop_description *description)
{
    struct shop_database *database = shop_database_open(postgres, description, -1);
    bool ok = database && shop_database_load(database);
    shop_database_close(database);
    return ok;
}

bool shop_servers_open(const struct shop_description *description, struct shop_servers *ret_servers)
{
    *ret_servers = (struct shop_servers){0};
    bool redis = description->uses_redis && !description->redis;
    /* A lock in Redis stands for its server. */
    const struct testbed_settings settings = {
        .database = !description->database, .strategies = redis ? "redis-lock" : NULL, .servers = "private"};
    if (!testbed_open(&settings, &ret_servers->testbed))
        return false;
    const struct lock_config *addresses = &ret_servers->testbed.addresses;
    ret_servers->postgres = description->database ? description->database : addresses->database_url;
    if (description->uses_redis)
        ret_servers->redis = redis ? addresses->redis_url : description->redis;
    if (redis && !*ret_servers->redis)
        complain(
            "the private Redis does not start. Install the package redis-server, or name a server with \"redis\"");
    else if (!description->schema || load_schema(ret_servers->postgres, description))
        return true;
    shop_servers_close(ret_servers);
    return false;
}

void shop_servers_close(struct shop_servers *servers)
{
    testbed_close(&servers->testbed);
    servers->postgres = servers->redis = NULL;
}

/* ---- starting ------------------------------------------------------------------------------------------ */

bool shop_can_have_env(const struct shop_description *description, const struct texts *env)
{
    for (size_t i = 0; i < env->count; i++)
        if (env->item[i][0] == '=' || !strchr(env->item[i], '=')) {
            complain("--env '%s' is not valid (valid: NAME=VALUE)", env->item[i]);
            return false;
        }
    if (env->count == 0 || description->start[0])
        return true;
    complain("--env is for a service that the command starts. Add \"start\" to %s", description->path);
    return false;
}

bool shop_can_have_instances(const struct shop_description *description, size_t instances)
{
    if (instances <= 1)
        return true;
    if (!description->start[0])
        shop_complain(description, "",
                      "has no \"start\", so the command cannot start %zu instances. Add \"start\"",
                      instances);
    else if (!shop_mentions(description->request.url, "port"))
        shop_complain(description, "request.url",
                      "has no {port}, so %zu instances would share one. Write {port}, and give it to "
                      "the service in \"env\" or \"start\"",
                      instances);
    else
        return true;
    return false;
}

/* Free ports. They are open at the same time, so that they differ; another program may take one before the service does, which
 * then says so. */
static bool find_ports(size_t count, int64_t *ret_ports)
{
    int sockets[INSTANCES_MAX];
    size_t made = 0;
    bool ok = true;
    for (; ok && made < count; made++) {
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t size = sizeof address;
        sockets[made] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        ok = sockets[made] >= 0 && bind(sockets[made], (struct sockaddr *)&address, sizeof address) == 0 &&
             getsockname(sockets[made], (struct sockaddr *)&address, &size) == 0;
        ret_ports[made] = ntohs(address.sin_port);
    }
    if (!ok)
        complain("cannot find a free port: %s", strerror(errno));
    for (size_t i = 0; i < made; i++)
        if (sockets[i] >= 0)
            close(sockets[i]);
    return ok;
}

struct shop_values shop_values_of(const struct shop_service *service, size_t i)
{
    struct shop_values values = SHOP_NO_VALUES;
    values.port = service->port[i];
    values.instance = (int64_t)i + 1;
    return values;
}

/* The words and variables of one instance, each to be freed. */
struct command {
    char *words[SHOP_WORDS_MAX + 1], *variables[SHOP_PAIRS_MAX + TEXTS_MAX + 1];
};

static bool make_command(const struct shop_plan *plan, const struct shop_values *values,
                         struct command *ret_command)
{
    const struct shop_description *description = plan->description;
    bool ok = true;
    size_t count = 0;
    *ret_command = (struct command){0};
    for (size_t i = 0; ok && description->start[i]; i++)
        ok = (ret_command->words[i] = shop_expand(description->start[i], values)) != NULL;
    for (size_t i = 0; ok && i < description->env.count; i++) {
        char *value = shop_expand(description->env.value[i], values);
        ok = value && asprintf(&ret_command->variables[count], "%s=%s", description->env.name[i], value) > 0;
        count += ok;
        free(value);
    }
    for (size_t i = 0; ok && plan->env && i < plan->env->count; i++)
        ok = (ret_command->variables[count++] = shop_expand(plan->env->item[i], values)) != NULL;
    return ok;
}

static void free_command(struct command *command)
{
    for (size_t i = 0; i <= SHOP_WORDS_MAX; i++)
        free(command->words[i]);
    for (size_t i = 0; i <= SHOP_PAIRS_MAX + TEXTS_MAX; i++)
        free(command->variables[i]);
}

static bool start_instance(const struct shop_plan *plan, struct shop_service *service, size_t i)
{
    struct command command;
    struct shop_values values = shop_values_of(service, i);
    values.postgres = plan->postgres;
    values.redis = plan->redis;
    bool ok = make_command(plan, &values, &command);
    const struct child_plan child = {
        .argv = (const char *const *)command.words,
        .env = (const char *const *)command.variables,
        .log = service->log[i],
        .folder = plan->description->folder,
        .death_signal = SIGKILL,
    };
    if (!ok)
        complain("out of memory");
    else if (!child_start(&child, &service->process[i]))
        ok = (complain("cannot start a process: %s", strerror(errno)), false);
    free_command(&command);
    return ok;
}

/* ---- watching ------------------------------------------------------------------------------------------ */

/* It is not collected, so that its process group keeps its number until all of it has been stopped. */
static bool has_ended(const struct shop_service *service, size_t i, siginfo_t *ret_end)
{
    *ret_end = (siginfo_t){0};
    return waitid(P_PID, (id_t)service->process[i].pid, ret_end, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           ret_end->si_pid != 0;
}

static void say_end(const struct shop_service *service, size_t i, const siginfo_t *end)
{
    char how[80];
    if (end->si_code == CLD_EXITED)
        snprintf(how, sizeof how, "exit status %d", end->si_status);
    else
        snprintf(how, sizeof how, "signal %d, %s", end->si_status, strsignal(end->si_status));
    if (service->struck)
        shop_complain(
            service->description, "start",
            "has ended (%s), because this command closed a connection of it, as a fault does. Let the service survive that: in Node, for "
            "example, a client of the pool needs a listener for 'error' while a request uses it. The last output of instance %zu:",
            how, i + 1);
    else
        shop_complain(
            service->description, "start",
            "has ended (%s) before the test was over. Correct \"start\" or \"env\"; try the command in a shell. The "
            "last output of instance %zu:",
            how, i + 1);
    print_log_tail(service->log[i], TAIL_LINES);
}

bool shop_service_is_alive(const struct shop_service *service)
{
    siginfo_t end;
    for (size_t i = 0; i < service->count; i++)
        if (service->process[i].pid != 0 && has_ended(service, i, &end))
            return false;
    return true;
}

bool shop_service_runs(struct shop_service *service)
{
    struct stat status;
    siginfo_t end;
    for (size_t i = 0; i < service->count; i++) {
        if (service->process[i].pid == 0)
            continue;
        if (has_ended(service, i, &end)) {
            say_end(service, i, &end);
            return false;
        }
        /* It is opened for appending, so the service continues at the new end. */
        if (stat(service->log[i], &status) == 0 && status.st_size > LOG_MAX_BYTES &&
            truncate(service->log[i], 0) != 0)
            complain("cannot shorten %s: %s", service->log[i], strerror(errno));
    }
    return true;
}

/* Asks instance I once. If not, RET_WHY says what it answered. */
static bool is_ready(const struct shop_service *service, size_t i, char *ret_why, size_t size,
                     CURLcode *ret_code)
{
    const struct shop_description *description = service->description;
    const struct shop_values values = shop_values_of(service, i);
    if (!description->ready) {
        *ret_code = shop_http_listens(description->request.url, &values, READY_MS);
        snprintf(ret_why, size, "nothing listens at the address of \"request\"");
        return *ret_code == CURLE_OK;
    }
    const struct shop_request request = {.method = "GET", .url = description->ready};
    struct shop_answer answer;
    *ret_code = shop_http_send(&request, &values, READY_MS, &answer);
    if (answer.status)
        snprintf(ret_why, size, "\"ready\" was answered with %ld: %.100s", answer.status, answer.text);
    else
        snprintf(ret_why, size, "\"ready\" was not answered: %.100s", answer.text);
    return answer.status >= 200 && answer.status < 300;
}

/* Nothing that the service does later can help. */
static bool say_refusal(const struct shop_description *description, CURLcode code)
{
    shop_complain(
        description, description->ready ? "ready" : "request.url",
        "is an address with TLS that cannot be used: %s. Write an http:// address, or let this machine trust the "
        "certificate (update-ca-certificates)",
        curl_easy_strerror(code));
    return false;
}

static bool await_instance(struct shop_service *service, size_t i, int64_t until_us)
{
    const struct shop_description *description = service->description;
    char why[256];
    CURLcode code;
    while (!is_ready(service, i, why, sizeof why, &code)) {
        if (interrupted() || !shop_service_runs(service))
            return false;
        if (shop_http_is_refused(code))
            return say_refusal(description, code);
        if (monotonic_us() >= until_us) {
            shop_complain(description,
                          description->ready      ? "ready"
                          : description->start[0] ? "start"
                                                  : "request.url",
                          "took longer than %" PRId64 " ms (start_timeout_ms): %s%s",
                          description->start_timeout_ms, why,
                          description->start[0] ? ". The last output of the service:"
                                                : ". Start the service first");
            if (description->start[0])
                print_log_tail(service->log[i], TAIL_LINES);
            return false;
        }
        (void)sleep_unless_interrupted(POLL_MS);
    }
    return !interrupted() && shop_service_runs(service);
}

bool shop_service_start(const struct shop_plan *plan, struct shop_service *ret_service)
{
    const struct shop_description *description = plan->description;
    bool starts = description->start[0] != NULL;
    *ret_service = (struct shop_service){.description = description, .count = starts ? plan->instances : 1};
    for (size_t i = 0; i < ret_service->count; i++) {
        ret_service->port[i] = -1;
        snprintf(ret_service->log[i], sizeof ret_service->log[i], "%s/instance-%zu.log", plan->folder, i + 1);
    }
    if (starts)
        adoption_begin(&ret_service->adoption);
    bool ok = !starts || find_ports(ret_service->count, ret_service->port);
    for (size_t i = 0; ok && starts && i < ret_service->count; i++)
        ok = start_instance(plan, ret_service, i);
    int64_t until_us = monotonic_us() + description->start_timeout_ms * 1000;
    for (size_t i = 0; ok && i < ret_service->count; i++)
        ok = await_instance(ret_service, i, until_us);
    if (!ok)
        shop_service_stop(ret_service);
    return ok;
}

/* ---- the stock -------------------------------------------------------------------------------------------- */

static bool reset_by_request(const struct shop_service *service, size_t instance, int64_t stock)
{
    const struct shop_description *description = service->description;
    struct shop_values values = shop_values_of(service, instance);
    struct shop_answer answer;
    values.stock = stock;
    (void)shop_http_send(&description->reset_request, &values, description->timeout_ms, &answer);
    if (answer.status >= 200 && answer.status <= 299)
        return true;
    if (!interrupted() && answer.status)
        shop_complain(description, "reset", "was answered with %ld: %.200s", answer.status, answer.text);
    else if (!interrupted())
        shop_complain(description, "reset", "was not answered: %.200s", answer.text);
    return false;
}

bool shop_service_reset(const struct shop_service *service, struct shop_database *database, int64_t stock)
{
    const char *url = service->description->reset_request.url;
    if (!url)
        return shop_database_reset(database);
    size_t count = shop_mentions(url, "port") || shop_mentions(url, "instance") ? service->count : 1;
    bool ok = true;
    for (size_t i = 0; ok && i < count; i++) /* each may have the stock in its memory */
        ok = reset_by_request(service, i, stock);
    return ok;
}

bool shop_service_restock(const struct shop_service *service, struct shop_database *database, int64_t stock,
                          struct shop_stock *ret_before)
{
    if (!shop_service_reset(service, database, stock) || !shop_database_read(database, ret_before))
        return false;
    if (ret_before->left < 1)
        shop_complain(service->description, "stock",
                      "is %" PRId64 " after \"reset\", so there is nothing to sell. Correct one of them",
                      ret_before->left);
    return ret_before->left >= 1;
}

/* ---- stopping ------------------------------------------------------------------------------------------ */

void shop_service_stop(struct shop_service *service)
{
    siginfo_t end;
    int64_t until_us = monotonic_us() + (int64_t)STOP_MS * 1000;
    for (size_t i = 0; i < service->count; i++)
        child_signal(&service->process[i], SIGTERM);
    for (size_t i = 0; i < service->count; i++) {
        if (service->process[i].pid == 0)
            continue;
        while (!has_ended(service, i, &end) && monotonic_us() < until_us)
            (void)poll(NULL, 0, POLL_MS / 4);
        /* Also what it has started itself, while the group cannot be another one. */
        child_signal(&service->process[i], SIGKILL);
        (void)child_wait(&service->process[i], KILL_MS, false);
        child_stop(&service->process[i], 0);
    }
    if (service->count > 0 && service->description->start[0])
        adoption_end(&service->adoption, STOP_MS);
    service->count = 0;
}
