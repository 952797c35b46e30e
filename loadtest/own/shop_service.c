/* A user's service and its database: started where the description says how, reset, and asked what was sold. */
#include "loadtest/own/shop_service.h"

#include "base/clock.h"
#include "db/postgres/connection.h"
#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/own/shop_request.h"

#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

enum {
    SQL_US = 10000000, /* a statement of the description may take as long */
    RESET_MS = 30000,  /* so may a request that resets */
    LOOK_MS = 50,      /* between two looks whether an instance is ready */
    ANSWER_MS = 5000,  /* an answer to that */
    STOP_MS = 5000,    /* an instance has as long to end by itself */
    LOG_LINES = 15,
    ENV_MAX = 160,
    ARGUMENTS_MAX = 70,
    LIBPQ_MAX = 8,
};

/* ---- SQL --------------------------------------------------------------------------------------------------------- */

static void set_deadline(struct shop_service *service)
{
    int64_t deadline_us = monotonic_us() + SQL_US;
    db_set_deadline(service->db, deadline_us, deadline_us);
}

/* NAME: the member of the description. */
static bool sql_failed(const struct shop_service *service, const char *name, const char *sql)
{
    char error[400];
    snprintf(error, sizeof error, "%s", db_error(service->db));
    error[strcspn(error, "\n")] = '\0';
    if (sql)
        complain("%s: PostgreSQL refused '%.200s': %s", name, sql, error);
    else
        complain("%s: %s", name, error);
    return false;
}

static bool run_sql(struct shop_service *service, const char *name, const char *sql)
{
    set_deadline(service);
    return db_run_script(service->db, sql) == DB_OK || sql_failed(service, name, sql);
}

/* The only value of the only row, to be freed. NULL, having said why on stderr. */
static char *read_value(struct shop_service *service, const char *name, const char *sql)
{
    AUTO_RESULT result = NULL;
    char *value = NULL;
    set_deadline(service);
    if (db_run_text(service->db, sql, &result) != DB_OK) {
        (void)sql_failed(service, name, sql);
        return NULL;
    }
    if (PQntuples(result) != 1 || PQnfields(result) != 1 || PQgetisnull(result, 0, 0))
        complain(
            "%s: '%.200s' must return one row with one value that is not NULL; it returned %d row%s of %d value%s",
            name, sql, PQntuples(result), PQntuples(result) == 1 ? "" : "s", PQnfields(result),
            PQnfields(result) == 1 ? "" : "s");
    else if (!(value = strdup(PQgetvalue(result, 0, 0))))
        complain("out of memory");
    return value;
}

bool shop_service_number(struct shop_service *service, const char *name, const char *sql, int64_t *ret_number)
{
    char *value = read_value(service, name, sql);
    bool negative = value && *value == '-', is_number = value && parse_number(value + negative, ret_number);
    if (is_number && negative)
        *ret_number = -*ret_number;
    if (value && !is_number)
        complain("%s: '%.200s' must return a whole number; it returned '%.40s'", name, sql, value);
    free(value);
    return is_number;
}

bool shop_service_holds(struct shop_service *service, const char *sql, bool *ret_holds)
{
    char *value = read_value(service, "invariant", sql);
    bool is_truth = value && (strcmp(value, "t") == 0 || strcmp(value, "f") == 0);
    *ret_holds = is_truth && *value == 't';
    if (value && !is_truth)
        complain("invariant: '%.200s' must return true or false; it returned '%.40s'", sql, value);
    free(value);
    return is_truth;
}

/* ---- placeholders -------------------------------------------------------------------------------------------------- */

void shop_service_values(const struct shop_service *service, int64_t number, char *number_text,
                         struct placeholder ret_values[SHOP_PLACEHOLDERS])
{
    const struct lock_config *addresses = &service->testbed.addresses;
    size_t instance = service->count > 0 ? (size_t)number % service->count : 0;
    const char *database = service->description->database;
    snprintf(number_text, 24, "%" PRId64, number);
    const struct placeholder values[] = {
        {"port", service->ports[instance]},
        {"postgres", database                  ? database
                     : addresses->database_url ? addresses->database_url
                                               : ""},
        {"redis", addresses->redis_url ? addresses->redis_url : ""},
        {"number", number_text},
        {NULL, NULL},
    };
    memcpy(ret_values, values, sizeof values);
}

/* ---- the instances --------------------------------------------------------------------------------------------------- */

static void log_of(const struct shop_service *service, size_t i, char *ret_path)
{
    snprintf(ret_path, PATH_MAX + 48, "%s/instance-%zu.log", service->testbed.dir, i + 1);
}

/* A port of the loopback interface that is free now. */
static bool find_port(char ret_port[static 8])
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool found = listener >= 0 && bind(listener, (struct sockaddr *)&address, size) == 0 &&
                 getsockname(listener, (struct sockaddr *)&address, &size) == 0;
    if (!found)
        complain("there is no free port: %s", strerror(errno));
    if (listener >= 0)
        close(listener);
    snprintf(ret_port, 8, "%u", found ? (unsigned)ntohs(address.sin_port) : 0);
    return found;
}

/* Adds "NAME=value" to the environment ENV, which has COUNT variables. */
static bool add_variable(char **env, size_t *count, const char *name, const char *value)
{
    if (*count == ENV_MAX || asprintf(&env[*count], "%s=%s", name, value) < 0)
        return false;
    ++*count;
    return true;
}

/* What libpq, and what was made after its example, looks for; then what the description says, and what the user says. ENV has room
 * for ENV_MAX + 1. */
static bool make_environment(const struct shop_service *service, const struct texts *given,
                             const struct placeholder *values, char **env)
{
    const char *name, *url = values[1].value;
    json_t *value;
    size_t count = 0;
    char *libpq[LIBPQ_MAX + 1] = {0};
    bool well = !*url || db_url_environment(url, libpq, LIBPQ_MAX);
    for (size_t i = 0; libpq[i]; i++)
        env[count++] = libpq[i];
    json_object_foreach((json_t *)service->description->env, name, value) {
        char *text = description_expand(json_string_value(value), values);
        well = well && text && add_variable(env, &count, name, text);
        free(text);
    }
    for (size_t i = 0; i < given->count && well; i++) {
        env[count] = count < ENV_MAX ? strdup(given->item[i]) : NULL;
        well = env[count] != NULL;
        count += well;
    }
    if (!well)
        complain("cannot make the environment of the service: out of memory");
    return well;
}

/* The shell goes to the folder of the description, and becomes the program. */
static bool start_instance(struct shop_service *service, size_t i, const struct texts *env)
{
    static const char GO[] = "cd \"$0\" && exec \"$@\"";
    const struct description *description = service->description;
    const char *argv[ARGUMENTS_MAX] = {"sh", "-c", GO, description->folder};
    char *expanded[ARGUMENTS_MAX] = {0}, *variables[ENV_MAX + 1] = {0}, log[PATH_MAX + 48], number[24];
    struct placeholder values[SHOP_PLACEHOLDERS];
    size_t count = json_array_size(description->start);
    log_of(service, i, log);
    shop_service_values(service, (int64_t)i, number, values);
    bool well = make_environment(service, env, values, variables);
    for (size_t word = 0; word < count && well; word++) {
        expanded[word] = description_expand(json_string_value(json_array_get(description->start, word)),
                                            values);
        argv[4 + word] = expanded[word];
        well = expanded[word] != NULL;
    }
    const struct child_plan plan = {
        .argv = argv, .env = (const char *const *)variables, .log = log, .death_signal = SIGTERM};
    well = well && child_start(&plan, &service->instances[i]);
    if (!well)
        complain("cannot start the service: %s", strerror(errno));
    for (size_t word = 0; word < count; word++)
        free(expanded[word]);
    for (size_t variable = 0; variables[variable]; variable++)
        free(variables[variable]);
    return well;
}

static bool is_alive(struct shop_service *service, size_t i)
{
    char status[64], log[PATH_MAX + 48];
    if (!service->instances[i].pid || !child_ended(&service->instances[i]))
        return true;
    log_of(service, i, log);
    complain("start: instance %zu of the service has ended (%s); its last output:", i + 1,
             child_status_text(&service->instances[i], status));
    print_log_tail(log, LOG_LINES);
    return false;
}

bool shop_service_alive(struct shop_service *service)
{
    bool alive = true;
    for (size_t i = 0; i < service->count && alive; i++)
        alive = !service->ports[i][0] || is_alive(service, i);
    return alive;
}

static bool await_instance(struct shop_service *service, size_t i, int64_t start_ms)
{
    struct placeholder values[SHOP_PLACEHOLDERS];
    struct shop_answer answer = {0};
    char number[24], log[PATH_MAX + 48];
    int64_t end_us = monotonic_us() + start_ms * 1000;
    struct shop_connection *connection = shop_connection_open();
    shop_service_values(service, (int64_t)i, number, values);
    json_auto_t *look = json_pack("{s:s, s:s}", "method", "GET", "url", service->description->ready);
    bool ready = false;
    if (!connection || !look)
        complain("out of memory");
    while (connection && look && !ready && is_alive(service, i) && monotonic_us() < end_us &&
           !interrupted()) {
        if (!shop_request_send(connection, look, values, ANSWER_MS, &answer))
            break;
        ready = answer.status >= 200 && answer.status < 400;
        if (!ready && !sleep_unless_interrupted(LOOK_MS))
            break;
    }
    shop_connection_close(connection);
    if (ready || interrupted() || monotonic_us() < end_us)
        return ready;
    char *url = description_expand(service->description->ready, values);
    if (answer.status)
        complain("ready: %s answers with status %ld after %g s; it must answer with a status below 400",
                 url ? url : "", answer.status, (double)start_ms / 1000);
    else
        complain(
            "ready: %s does not answer after %g s: %s. Check that the service listens on the port {port}, or give it more "
            "time with --start-time. Its last output:",
            url ? url : "", (double)start_ms / 1000, answer.text);
    free(url);
    log_of(service, i, log);
    if (service->instances[i].pid)
        print_log_tail(log, LOG_LINES);
    return false;
}

static bool start_instances(struct shop_service *service, const struct shop_settings *settings)
{
    bool starts = service->description->start != NULL;
    for (; service->count < (size_t)settings->instances; service->count++)
        if (starts && !find_port(service->ports[service->count]))
            return false;
    for (size_t i = 0; starts && i < service->count; i++)
        if (!start_instance(service, i, &settings->env))
            return false;
    for (size_t i = 0; service->description->ready && i < service->count; i++)
        if (!await_instance(service, i, settings->start_ms))
            return false;
    return true;
}

/* ---- the database ------------------------------------------------------------------------------------------------------ */

/* The text of the schema, to be freed; NULL, having said why on stderr. */
static char *read_schema(const struct description *description)
{
    char path[2 * PATH_MAX], *text = NULL;
    size_t size = 0;
    bool is_absolute = description->schema[0] == '/';
    snprintf(path, sizeof path, "%s%s%s", is_absolute ? "" : description->folder, is_absolute ? "" : "/",
             description->schema);
    FILE *file = fopen(path, "re");
    ssize_t length = file ? getdelim(&text, &size, '\0', file) : -1;
    if (length < 0)
        complain("schema: cannot read %s: %s", path, errno ? strerror(errno) : "it is empty");
    if (file)
        fclose(file);
    if (length >= 0)
        return text;
    free(text);
    return NULL;
}

static bool open_database(struct shop_service *service)
{
    const struct description *description = service->description;
    const char *url = description->database ? description->database : service->testbed.addresses.database_url;
    service->db = db_url_is_valid(url) ? db_new(url, "loadtest check") : NULL;
    if (!service->db) {
        complain(
            "database: '%s' is no address that libpq can read, such as postgresql://USER:PASSWORD@HOST:5432/NAME",
            url);
        return false;
    }
    set_deadline(service);
    if (db_ready(service->db) != DB_OK)
        return sql_failed(service, "database", NULL);
    if (!description->schema)
        return true;
    char *schema = read_schema(description);
    set_deadline(service);
    bool loaded = schema && (db_run_script(service->db, schema) == DB_OK ||
                             sql_failed(service, description->schema, NULL));
    free(schema);
    return loaded;
}

/* ---- opening and closing ------------------------------------------------------------------------------------------------- */

bool shop_service_open(const struct description *description, const struct shop_settings *settings,
                       struct shop_service *ret_service)
{
    const struct testbed_settings servers = {
        .database = !description->database,
        .strategies = description->redis ? "redis-lock" : NULL, /* which needs Redis */
        .servers = "private",
    };
    *ret_service = (struct shop_service){.description = description};
    if (!testbed_open(&servers, &ret_service->testbed))
        return false;
    if (description->redis &&
        (!ret_service->testbed.addresses.redis_url || !*ret_service->testbed.addresses.redis_url))
        complain("redis: the private Redis cannot be started; install redis-server, or set redis to false");
    else if (open_database(ret_service) && start_instances(ret_service, settings))
        return true;
    shop_service_close(ret_service);
    return false;
}

void shop_service_close(struct shop_service *service)
{
    for (size_t i = 0; i < service->count; i++)
        child_signal(&service->instances[i], SIGTERM); /* all at once */
    for (size_t i = 0; i < service->count; i++)
        child_stop(&service->instances[i], STOP_MS);
    db_free(service->db);
    testbed_close(&service->testbed);
    *service = (struct shop_service){0};
}

/* ---- the reset -------------------------------------------------------------------------------------------------------------- */

static bool reset_by_request(struct shop_service *service, const struct placeholder *values)
{
    struct shop_answer answer;
    struct shop_connection *connection = shop_connection_open();
    if (!connection)
        complain("out of memory");
    bool sent = connection &&
                shop_request_send(connection, service->description->reset, values, RESET_MS, &answer);
    shop_connection_close(connection);
    if (!sent || (answer.status >= 200 && answer.status < 300))
        return sent;
    if (answer.status)
        complain("reset: the service answered with status %ld: %s", answer.status, answer.text);
    else
        complain("reset: the service did not answer: %s", answer.text);
    return false;
}

bool shop_service_reset(struct shop_service *service, int64_t stock)
{
    char number[24], stock_text[24];
    struct placeholder values[SHOP_PLACEHOLDERS];
    size_t i;
    json_t *sql;
    shop_service_values(service, 0, number, values);
    for (i = 0; values[i].name; i++)
        continue;
    snprintf(stock_text, sizeof stock_text, "%" PRId64, stock);
    values[i] = (struct placeholder){"stock", stock_text};
    values[i + 1] = (struct placeholder){NULL, NULL};
    if (json_is_object(service->description->reset))
        return reset_by_request(service, values);
    json_array_foreach(service->description->reset, i, sql) {
        char *text = description_expand(json_string_value(sql), values);
        bool done = text && run_sql(service, "reset", text);
        free(text);
        if (!done)
            return false;
    }
    return true;
}
