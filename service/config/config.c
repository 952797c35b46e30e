/* The service's configuration: a table with one row for each setting, and the checks of all values before anything starts. */
#include "service/config/config.h"

#include "base/log.h"
#include "base/secret.h"
#include "db/postgres/connection.h"
#include "service/engine/strategy.h"
#include "service/http/host_name.h"
#include "service/http/server.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum type {
    TEXT,
    NUMBER,
    SWITCH,
    STRATEGY,
    LEVEL,
    FORMAT,
    ADDRESS,
    PREFIX,
    REDIS_LIST,
    ETCD_LIST,
    HOST_LIST,
    HOST_NAMES
};

static const char *const log_formats[] = {"text", "json", NULL};

struct setting {
    /* without the dashes; NULL: by environment only, because arguments can be seen by all */
    const char *flag;
    const char *variable;
    enum type type;
    size_t offset;
    const char *preset;
    const char *unit;
    int64_t least, most; /* of a number; of the servers in a list, 0: any number */
    const char *help;    /* one sentence of at most 20 words */
    const char *heading; /* of the group that this setting begins; otherwise NULL */
};

#define AT(member) offsetof(struct config, member)

/* clang-format off */
static const struct setting settings[] = {
    {"listen", "LISTEN", ADDRESS, AT(listen), "127.0.0.1:8080", "ADDRESS:PORT", 0, 0,
     "Address and port of the service; port 0 takes a free one, and addresses beyond loopback need ADMIN_TOKEN.", "Network"},
    {"port-file", "PORT_FILE", TEXT, AT(port_file), "", "PATH", 0, 0,
     "File into which the service writes its port once it accepts connections.", NULL},
    {"allowed-hosts", "ALLOWED_HOSTS", HOST_NAMES, AT(allowed_hosts), "", "NAME,…", 0, 0,
     "Host names that clients may use, in addition to numeric addresses, localhost and this machine's name.", NULL},
    {NULL, "ADMIN_TOKEN", TEXT, AT(admin_token), "", "TOKEN", 0, 0,
     "Bearer token that a client must send to change settings or products.", NULL},
    {"admin-token-file", "ADMIN_TOKEN_FILE", TEXT, AT(admin_token_file), "", "PATH", 0, 0,
     "File whose first line is the admin token.", NULL},
    {"http-threads", "HTTP_THREADS", NUMBER, AT(http_threads), "1", "threads", 1, HTTP_THREADS_MAX,
     "Threads that read requests and write replies.", NULL},
    {"connections", "CONNECTIONS", NUMBER, AT(connections), "10000", "connections", 1, 100000,
     "Limit of open HTTP connections; lower if the process gets too few file descriptors.", NULL},
    {"connections-per-address", "CONNECTIONS_PER_ADDRESS", NUMBER, AT(connections_per_address), "0", "connections", 0, 100000,
     "Limit for one client address; 0: a quarter of CONNECTIONS, unlimited for this machine (docs/security.md).", NULL},
    {"request-timeout-ms", "REQUEST_TIMEOUT_MS", NUMBER, AT(request_timeout_ms), "30000", "ms", 100, 600000,
     "Time for a client to send a request, and to read the reply.", NULL},
    {"first-byte-ms", "FIRST_BYTE_MS", NUMBER, AT(first_byte_ms), "10000", "ms", 100, 600000,
     "Time for a client to send the first byte on a new connection.", NULL},
    {"idle-timeout-ms", "IDLE_TIMEOUT_MS", NUMBER, AT(idle_timeout_ms), "75000", "ms", 1000, 3600000,
     "Time that a connection may stay open between two requests.", NULL},

    {"database-url", "DATABASE_URL", TEXT, AT(database_url), "postgresql:///oversell", "URL", 0, 0,
     "PostgreSQL database with the products and the orders.", "Servers"},
    {"lock-database-url", "LOCK_DATABASE_URL", TEXT, AT(lock_database_url), "", "URL", 0, 0,
     "PostgreSQL database with the lock tables (default: DATABASE_URL).", NULL},
    {"redis-url", "REDIS_URL", REDIS_LIST, AT(redis_url), "", "redis://HOST:PORT/DB", 0, 0,
     "Redis server for locks, and for stock that is kept in Redis.", NULL},
    {"redlock-urls", "REDLOCK_URLS", REDIS_LIST, AT(redlock_urls), "", "redis://HOST:PORT,…", 0, LOCK_REDLOCK_MOST,
     "Independent Redis servers for Redlock.", NULL},
    {"zookeeper-connect", "ZOOKEEPER_CONNECT", HOST_LIST, AT(zookeeper_connect), "", "HOST:PORT,…", 0, 0,
     "ZooKeeper servers for locks.", NULL},
    {"etcd-endpoints", "ETCD_ENDPOINTS", ETCD_LIST, AT(etcd_endpoints), "", "http://HOST:PORT,…", 0, LOCK_ETCD_MOST,
     "etcd servers for locks.", NULL},
    {"lock-prefix", "LOCK_PREFIX", PREFIX, AT(lock_prefix), "oversell", "WORD", 0, 0,
     "Prefix of all lock names on these servers.", NULL},

    {"strategy", "STRATEGY", STRATEGY, AT(strategy), "atomic-decrement", "NAME", 0, 0,
     "Strategy at start; the page and PUT /strategy change it later.", "Orders"},
    {"instance", "INSTANCE", TEXT, AT(instance), "", "NAME", 0, 0,
     "Name of this process in orders, traces and logs (default: order-service-PID).", NULL},
    {"workers", "WORKERS", NUMBER, AT(workers), "16", "threads", 1, 256,
     "Threads that place orders, each with a separate database connection.", NULL},
    {"product-workers", "PRODUCT_WORKERS", NUMBER, AT(product_workers), "0", "threads", 0, 256,
     "Workers that one product may occupy; 0: all, or in a class a quarter, but at least 2.", NULL},
    {"product-limit", "PRODUCT_LIMIT", NUMBER, AT(product_limit), "0", "orders", 0, PRODUCT_LIMIT_MAX,
     "Orders of one product that may use the database at the same time; 0: unlimited.", NULL},
    {"in-turn", "IN_TURN", SWITCH, AT(in_turn), "yes", "yes or no", 0, 0,
     "Places the waiting orders of a product one after the other where its row is the protection (docs/strategies.md).", NULL},
    {"queue", "QUEUE", NUMBER, AT(queue), "1024", "orders", 1, 100000,
     "Orders that may wait for one product; twice as many for all products together (docs/security.md).", NULL},
    {"product-queue", "PRODUCT_QUEUE", NUMBER, AT(product_queue), "0", "orders", 0, 100000,
     "Limit for one product instead of QUEUE; 0: QUEUE, or in a class a sixteenth of it.", NULL},
    {"lock-ttl-ms", "LOCK_TTL_MS", NUMBER, AT(lock_ttl_ms), "10000", "ms", 10, LOCK_TTL_MAX_MS,
     "Lease of a lock: it expires after this time unless it is renewed.", NULL},
    {"lock-wait-ms", "LOCK_WAIT_MS", NUMBER, AT(lock_wait_ms), "5000", "ms", 0, LOCK_WAIT_MAX_MS,
     "Time that an order waits for a lock, including locks of the database.", NULL},
    {"think-ms", "THINK_MS", NUMBER, AT(think_ms), "0", "ms", 0, THINK_MAX_MS,
     "Think time: a pause of each order between its read and its write, which makes races likely.", NULL},
    {"order-timeout-ms", "ORDER_TIMEOUT_MS", NUMBER, AT(order_timeout_ms), "10000", "ms", 100, 600000,
     "Deadline of an order, counted from its arrival.", NULL},

    {"classroom", "CLASSROOM", SWITCH, AT(classroom), "no", "yes or no", 0, 0,
     "Listens on all addresses, makes an admin token, and gives each learner a product (docs/page.md).", "Class"},
    {"sandbox-idle-ms", "SANDBOX_IDLE_MS", NUMBER, AT(sandbox_idle_ms), "1800000", "ms", 100, 86400000,
     "Time without a call after which a learner's product may go to another learner.", NULL},
    {"sandboxes-per-address", "SANDBOXES_PER_ADDRESS", NUMBER, AT(sandboxes_per_address), "50", "sandboxes", 0, 100,
     "Learners' products for one client address; 0: unlimited, for use behind a proxy.", NULL},
    {"learner-run-ms", "LEARNER_RUN_MS", NUMBER, AT(learner_run_ms), "60000", "ms", 1000, 900000,
     "Time limit of a learner's load run, because other runs wait for it.", NULL},

    {"log-level", "LOG_LEVEL", LEVEL, AT(log_level), "info", "error, warning, info or debug", 0, 0,
     "Least severe level that the service logs.", "Log"},
    {"log-format", "LOG_FORMAT", FORMAT, AT(log_format), "text", "text or json", 0, 0,
     "Format of the log lines.", NULL},
};
/* clang-format on */

enum { TOKEN_LENGTH = 20 }; /* of a token that is made here: 31^20 of them */

enum { SETTINGS = sizeof settings / sizeof settings[0] };

/* Prints the names in lines of at most 100 characters. */
static void print_strategies(FILE *to)
{
    enum { LINE = 100 };
    size_t used = LINE;
    for (size_t i = 0; i < strategy_count; i++) {
        size_t length = strlen(strategies[i].name) + 1;
        if (used + length > LINE)
            used = (size_t)fprintf(to, "\n ") - 1;
        used += length;
        fprintf(to, " %s", strategies[i].name);
    }
    fprintf(to, "\n");
}

void config_print_help(FILE *to)
{
    fprintf(
        to,
        "Usage: order-service [--FLAG VALUE]…\n\n"
        "Takes orders over HTTP and sells stock with a strategy, which can be changed while the service runs.\n"
        "Each setting is a flag or an environment variable. A flag overrides its variable.\n"
        "ms: milliseconds.\n");
    for (size_t i = 0; i < SETTINGS; i++) {
        const struct setting *s = &settings[i];
        if (s->heading)
            fprintf(to, "\n%s\n", s->heading);
        fprintf(to, "  %s%-23s %-23s ", s->flag ? "--" : "  ", s->flag ? s->flag : "(no flag)", s->variable);
        if (s->type == NUMBER)
            fprintf(to, "%lld to %lld ", (long long)s->least, (long long)s->most);
        fprintf(to, "%s", s->unit);
        if (s->preset[0])
            fprintf(to, ", default %s", s->preset);
        fprintf(to, "\n        %s\n", s->help);
    }
    fprintf(to, "  --help\n\nStrategies (docs/strategies.md)");
    print_strategies(to);
}

static bool listed(const char *const *names, const char *value)
{
    for (; *names; names++)
        if (strcmp(*names, value) == 0)
            return true;
    return false;
}

/* ADDRESS:PORT with a numeric address, [brackets] around IPv6, or localhost. */
static bool parse_address(const char *text, struct config *config)
{
    char host[64];
    const char *colon = strrchr(text, ':');
    if (!colon || colon == text || (size_t)(colon - text) >= sizeof host)
        return false;
    snprintf(host, sizeof host, "%.*s", (int)(colon - text), text);
    char *end;
    errno = 0;
    long port = strtol(colon + 1, &end, 10);
    if (errno || *end || !isdigit((unsigned char)colon[1]) || port > 65535)
        return false;

    struct sockaddr_in *v4 = (struct sockaddr_in *)&config->address;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&config->address;
    memset(&config->address, 0, sizeof config->address);
    size_t length = strlen(host);
    if (host[0] == '[' && host[length - 1] == ']') {
        host[length - 1] = '\0';
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons((uint16_t)port);
        config->address_size = sizeof *v6;
        return inet_pton(AF_INET6, host + 1, &v6->sin6_addr) == 1;
    }
    v4->sin_family = AF_INET;
    v4->sin_port = htons((uint16_t)port);
    config->address_size = sizeof *v4;
    return inet_pton(AF_INET, strcmp(host, "localhost") == 0 ? "127.0.0.1" : host, &v4->sin_addr) == 1;
}

static bool is_loopback(const struct config *config)
{
    if (config->address.ss_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)&config->address)->sin6_addr);
    return ntohl(((const struct sockaddr_in *)&config->address)->sin_addr.s_addr) >> 24 == 127;
}

static const char *setting_name(const struct setting *s, bool from_flag)
{
    static _Thread_local char name[40];
    snprintf(name, sizeof name, "%s%s", from_flag ? "--" : "", from_flag ? s->flag : s->variable);
    return name;
}

static void print_names(FILE *to, const char *const *names)
{
    for (; *names; names++)
        fprintf(to, " %s", *names);
    fprintf(to, "\n");
}

/* Servers separated by commas, each with a scheme that the kind of server takes, or HOST:PORT. */
static bool is_server_list(enum type type, const char *text)
{
    static const char *const schemes[][4] = {
        [REDIS_LIST] = {"redis://", "rediss://", "unix://"},
        [ETCD_LIST] = {"http://"},
        [HOST_LIST] = {""},
    };
    for (;; text++) {
        size_t length = strcspn(text, ","), scheme = 0;
        const char *const *known = schemes[type];
        while (*known && strncmp(text, *known, strlen(*known)) != 0)
            known++;
        if (!*known || strcspn(text, " \t") < length)
            return false;
        scheme = strlen(*known);
        if (length <= scheme || (scheme == 0 && !memchr(text, ':', length)))
            return false;
        text += length;
        if (!*text)
            return true;
    }
}

/* Checks VALUE and stores it; false with the reason on ERRORS. */
static bool set(struct config *config, const struct setting *s, const char *value, bool from_flag,
                FILE *errors)
{
    const char *name = setting_name(s, from_flag);
    void *field = (char *)config + s->offset;
    if (s->type == NUMBER) {
        char *end;
        errno = 0;
        long long number = strtoll(value, &end, 10);
        bool whole = !errno && *end == '\0' && (isdigit((unsigned char)value[0]) || value[0] == '-');
        if (!whole || number < s->least || number > s->most) {
            fprintf(errors,
                    "order-service: %s: '%s' is not valid; valid: a whole number from %lld to %lld (%s)\n",
                    name, value, (long long)s->least, (long long)s->most, s->unit);
            return false;
        }
        *(int64_t *)field = number;
        return true;
    }
    if (s->type == SWITCH) {
        static const char *const yes[] = {"yes", "true", "on", "1", NULL};
        static const char *const no[] = {"no", "false", "off", "0", NULL};
        *(int64_t *)field = listed(yes, value);
        if (listed(yes, value) || listed(no, value))
            return true;
        fprintf(errors, "order-service: %s: '%s' is not valid; valid: yes no\n", name, value);
        return false;
    }
    bool is_list = s->type == REDIS_LIST || s->type == ETCD_LIST || s->type == HOST_LIST;
    if (is_list && value[0] && !is_server_list(s->type, value)) {
        fprintf(errors, "order-service: %s is not valid; valid: %s\n", name, s->unit);
        return false;
    }
    if (is_list && s->most && lock_count_servers(value) > s->most) {
        fprintf(errors, "order-service: %s names %d servers; valid: 1 to %lld\n", name,
                lock_count_servers(value), (long long)s->most);
        return false;
    }
    if (s->type == STRATEGY && !strategy_find(value)) {
        fprintf(errors, "order-service: %s: there is no strategy '%s'; valid:", name, value);
        for (size_t i = 0; i < strategy_count; i++)
            fprintf(errors, " %s", strategies[i].name);
        fprintf(errors, "\n");
        return false;
    }
    if (s->type == LEVEL && !listed(log_level_names, value)) {
        fprintf(errors, "order-service: %s: '%s' is not valid; valid:", name, value);
        print_names(errors, log_level_names);
        return false;
    }
    if (s->type == FORMAT && !listed(log_formats, value)) {
        fprintf(errors, "order-service: %s: '%s' is not valid; valid:", name, value);
        print_names(errors, log_formats);
        return false;
    }
    if (s->type == PREFIX && !lock_is_prefix(value)) {
        fprintf(errors, "order-service: %s: '%s' is not valid; valid: %s\n", name, value, LOCK_PREFIX_RULE);
        return false;
    }
    if (s->type == HOST_NAMES && value[0] && !host_names_are_valid(value)) {
        fprintf(
            errors,
            "order-service: %s: '%s' is not valid; valid: host names of A-Z a-z 0-9 - . separated by commas, "
            "without spaces or ports\n",
            name, value);
        return false;
    }
    if (s->type == ADDRESS && !parse_address(value, config)) {
        fprintf(errors,
                "order-service: %s: '%s' is not valid; valid: ADDRESS:PORT with a numeric address, such as "
                "127.0.0.1:8080 or [::1]:8080\n",
                name, value);
        return false;
    }
    *(const char **)field = value;
    return true;
}

static const struct setting *find_flag(const char *name, size_t length)
{
    for (size_t i = 0; i < SETTINGS; i++)
        if (settings[i].flag && strlen(settings[i].flag) == length &&
            strncmp(settings[i].flag, name, length) == 0)
            return &settings[i];
    return NULL;
}

static enum config_result unknown_flag(const char *flag, FILE *errors)
{
    fprintf(errors, "order-service: unknown argument '%s'; valid:", flag);
    for (size_t i = 0; i < SETTINGS; i++)
        if (settings[i].flag)
            fprintf(errors, " --%s", settings[i].flag);
    fprintf(errors, " --help\n");
    return CONFIG_BAD;
}

static enum config_result read_flags(int argc, char *const argv[], struct config *config, FILE *errors)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0)
            return CONFIG_HELP;
        if (strncmp(argv[i], "--", 2) != 0)
            return unknown_flag(argv[i], errors);
        const char *name = argv[i] + 2;
        size_t length = strcspn(name, "=");
        const struct setting *s = find_flag(name, length);
        if (!s)
            return unknown_flag(argv[i], errors);
        const char *value = name[length] ? name + length + 1 : s->type == SWITCH ? "yes" : argv[++i];
        if (!value) {
            fprintf(errors, "order-service: --%s needs a value (%s)\n", s->flag, s->unit);
            return CONFIG_BAD;
        }
        if (!set(config, s, value, true, errors))
            return CONFIG_BAD;
    }
    return CONFIG_OK;
}

/* The first line of the token file. */
static bool read_token_file(struct config *config, FILE *errors)
{
    static char token[256];
    FILE *file = fopen(config->admin_token_file, "re");
    size_t size = file ? fread(token, 1, sizeof token - 1, file) : 0;
    if (file)
        fclose(file);
    token[size] = '\0';
    /* A token that was cut, at the buffer's end or at a NUL, would be easier to guess. */
    size_t length = strcspn(token, "\r\n");
    bool whole = strlen(token) == size && length < sizeof token - 1;
    token[length] = '\0';
    if (!token[0] || !whole) {
        fprintf(errors, "order-service: the first line of '%s' must be a token of 1 to %zu characters\n",
                config->admin_token_file, sizeof token - 2);
        return false;
    }
    config->admin_token = token;
    return true;
}

/* The name appears in the database, in JSON and in the log. */
static bool is_name(const char *text)
{
    size_t length = 0;
    while (text[length] >= ' ' && text[length] < 0x7f)
        length++;
    return !text[length] && length <= INSTANCE_MAX;
}

/* The value stays out of the message, and so does libpq's, which quotes it: it may contain a password. */
static bool check_database_url(const char *name, const char *url, FILE *errors)
{
    if (db_url_is_valid(url))
        return true;
    fprintf(errors,
            "order-service: %s is not valid; valid: postgresql://USER:PASSWORD@HOST:PORT/DATABASE, or "
            "KEY=VALUE words of libpq\n",
            name);
    return false;
}

/* Learners use other machines, so the service listens on all addresses, and the teacher needs a token. */
static bool prepare_classroom(struct config *config, FILE *errors)
{
    if (config->product_workers == 0)
        config->product_workers = config->workers >= 8 ? config->workers / 4 : 2;
    if (config->product_queue == 0)
        config->product_queue = config->queue >= 16 ? config->queue / 16 : 1;
    static char token[TOKEN_LENGTH + 1];
    const struct setting *listen = find_flag("listen", strlen("listen"));
    if (config->listen == listen->preset && !set(config, listen, "0.0.0.0:8080", true, errors))
        return false;
    if (!config->admin_token[0]) {
        make_secret(token, TOKEN_LENGTH);
        config->admin_token = token;
        config->token_made = true;
    }
    return true;
}

enum config_result config_load(int argc, char *const argv[], struct config *ret_config, FILE *errors)
{
    memset(ret_config, 0, sizeof *ret_config);
    for (size_t i = 0; i < SETTINGS; i++) {
        const char *value = getenv(settings[i].variable);
        bool given = value && value[0];
        if (!set(ret_config, &settings[i], given ? value : settings[i].preset, false, errors))
            return CONFIG_BAD;
    }
    enum config_result result = read_flags(argc, argv, ret_config, errors);
    if (result != CONFIG_OK)
        return result;
    if (ret_config->admin_token_file[0] && !read_token_file(ret_config, errors))
        return CONFIG_BAD;
    if (ret_config->classroom && !prepare_classroom(ret_config, errors))
        return CONFIG_BAD;
    if (!is_loopback(ret_config) && !ret_config->admin_token[0]) {
        fprintf(
            errors,
            "order-service: --listen %s is reachable from other machines, so ADMIN_TOKEN must be set; valid "
            "without a token: 127.0.0.1:PORT, [::1]:PORT\n",
            ret_config->listen);
        return CONFIG_BAD;
    }
    if (!is_name(ret_config->instance)) {
        fprintf(errors, "order-service: INSTANCE is not valid; valid: up to %d printable ASCII characters\n",
                INSTANCE_MAX);
        return CONFIG_BAD;
    }
    if (!ret_config->lock_database_url[0])
        ret_config->lock_database_url = ret_config->database_url;
    if (!check_database_url("DATABASE_URL", ret_config->database_url, errors) ||
        !check_database_url("LOCK_DATABASE_URL", ret_config->lock_database_url, errors))
        return CONFIG_BAD;
    return CONFIG_OK;
}
