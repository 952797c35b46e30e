/* Configuration: defaults, environment, flags, what is refused and with which words. */
#include "tests/unit/unit.h"

#include "base/log.h"
#include "service/config/config.h"
#include "service/engine/strategy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <unistd.h>

enum { ARGS_MAX = 8 };

/* Every setting: its flag (NULL: by environment only), its variable, its default as text. */
static const struct {
    const char *flag, *variable, *preset;
    size_t offset;
    bool is_number;
    int64_t least, most; /* where it is a number */
} settings[] = {
/* clang-format off */
#define TEXT(flag, variable, member, preset) {flag, variable, preset, offsetof(struct config, member), false, 0, 0}
#define NUMBER(flag, variable, member, preset, least, most) \
    {flag, variable, preset, offsetof(struct config, member), true, least, most}
    /* clang-format on */
    TEXT("--listen", "LISTEN", listen, "127.0.0.1:8080"),
    TEXT("--port-file", "PORT_FILE", port_file, ""),
    TEXT("--instance", "INSTANCE", instance, ""),
    TEXT(NULL, "ADMIN_TOKEN", admin_token, ""),
    TEXT("--admin-token-file", "ADMIN_TOKEN_FILE", admin_token_file, ""),
    TEXT("--database-url", "DATABASE_URL", database_url, "postgresql:///oversell"),
    TEXT("--lock-database-url", "LOCK_DATABASE_URL", lock_database_url, "postgresql:///oversell"),
    TEXT("--redis-url", "REDIS_URL", redis_url, ""),
    TEXT("--redlock-urls", "REDLOCK_URLS", redlock_urls, ""),
    TEXT("--zookeeper-connect", "ZOOKEEPER_CONNECT", zookeeper_connect, ""),
    TEXT("--etcd-endpoints", "ETCD_ENDPOINTS", etcd_endpoints, ""),
    TEXT("--lock-prefix", "LOCK_PREFIX", lock_prefix, "oversell"),
    TEXT("--allowed-hosts", "ALLOWED_HOSTS", allowed_hosts, ""),
    TEXT("--strategy", "STRATEGY", strategy, "atomic-decrement"),
    TEXT("--log-level", "LOG_LEVEL", log_level, "info"),
    TEXT("--log-format", "LOG_FORMAT", log_format, "text"),
    NUMBER("--workers", "WORKERS", workers, "16", 1, 256),
    NUMBER("--http-threads", "HTTP_THREADS", http_threads, "1", 1, 64),
    NUMBER("--queue", "QUEUE", queue, "1024", 1, 100000),
    NUMBER("--connections", "CONNECTIONS", connections, "10000", 1, 100000),
    NUMBER("--lock-ttl-ms", "LOCK_TTL_MS", lock_ttl_ms, "10000", 10, LOCK_TTL_MAX_MS),
    NUMBER("--lock-wait-ms", "LOCK_WAIT_MS", lock_wait_ms, "5000", 0, LOCK_WAIT_MAX_MS),
    NUMBER("--think-ms", "THINK_MS", think_ms, "0", 0, THINK_MAX_MS),
    NUMBER("--product-limit", "PRODUCT_LIMIT", product_limit, "0", 0, PRODUCT_LIMIT_MAX),
    NUMBER("--product-workers", "PRODUCT_WORKERS", product_workers, "0", 0, 256),
    NUMBER("--product-queue", "PRODUCT_QUEUE", product_queue, "0", 0, 100000),
    NUMBER("--order-timeout-ms", "ORDER_TIMEOUT_MS", order_timeout_ms, "10000", 100, 600000),
    NUMBER("--request-timeout-ms", "REQUEST_TIMEOUT_MS", request_timeout_ms, "30000", 100, 600000),
    NUMBER("--first-byte-ms", "FIRST_BYTE_MS", first_byte_ms, "10000", 100, 600000),
    NUMBER("--idle-timeout-ms", "IDLE_TIMEOUT_MS", idle_timeout_ms, "75000", 1000, 3600000),
    NUMBER("--learner-run-ms", "LEARNER_RUN_MS", learner_run_ms, "60000", 1000, 900000),
    NUMBER("--sandboxes-per-address", "SANDBOXES_PER_ADDRESS", sandboxes_per_address, "50", 0, 100),
    NUMBER("--connections-per-address", "CONNECTIONS_PER_ADDRESS", connections_per_address, "0", 0, 100000),
    NUMBER("--sandbox-idle-ms", "SANDBOX_IDLE_MS", sandbox_idle_ms, "1800000", 100, 86400000),
};

/* A value that each text setting takes and that is not its default. */
static const char *other_value(size_t i)
{
    static const struct {
        const char *variable, *value;
    } values[] = {
        {"LISTEN", "127.0.0.1:9"},
        {"STRATEGY", "mutex"},
        {"LOG_LEVEL", "debug"},
        {"LOG_FORMAT", "json"},
        {"ALLOWED_HOSTS", "shop.example,service-1"},
        {"REDIS_URL", "redis://127.0.0.1:6379"},
        {"REDLOCK_URLS", "redis://127.0.0.1:6379,redis://127.0.0.1:6380,redis://127.0.0.1:6381"},
        {"ZOOKEEPER_CONNECT", "127.0.0.1:2181"},
        {"ETCD_ENDPOINTS", "http://127.0.0.1:2379"},
        {"LOCK_PREFIX", "shop"},
    };
    for (size_t j = 0; j < COUNT(values); j++)
        if (strcmp(values[j].variable, settings[i].variable) == 0)
            return values[j].value;
    static char number[32];
    snprintf(number, sizeof number, "%lld", (long long)settings[i].most);
    return settings[i].is_number ? number : "postgresql://localhost/other";
}

/* ---- loading ---------------------------------------------------------------------------------------------- */

static struct config config;
static char said[8192]; /* what went to the errors */

static int forget(void **state)
{
    for (size_t i = 0; i < COUNT(settings); i++)
        unsetenv(settings[i].variable);
    return 0;
}

/* Loads with the arguments, ended by NULL. */
static enum config_result load(const char *first, ...)
{
    char *argv[ARGS_MAX + 2] = {(char[]){"order-service"}};
    int argc = 1;
    va_list args;
    va_start(args, first);
    for (const char *arg = first; arg && argc <= ARGS_MAX; arg = va_arg(args, const char *))
        argv[argc++] = strdup(
            arg); /* settings point into them; they live as long as a program's arguments do */
    va_end(args);
    static char *kept[10000]; /* so that they are not called leaks */
    static size_t kept_count;
    for (int i = 1; i < argc && kept_count < COUNT(kept); i++)
        kept[kept_count++] = argv[i];

    memset(&config, 0xee, sizeof config);
    said[0] = '\0';
    FILE *errors = fmemopen(said, sizeof said, "w");
    assert_non_null(errors);
    enum config_result result = config_load(argc, argv, &config, errors);
    fclose(errors);
    said[sizeof said - 1] = '\0';
    if (result == CONFIG_BAD) {
        assert_int_equal(strncmp(said, "order-service: ", 15), 0);
        assert_int_equal(said[strlen(said) - 1], '\n');
    } else {
        assert_string_equal(said, "");
    }
    return result;
}

/* The setting as it was loaded, as text. */
static const char *loaded(size_t i)
{
    static char number[32];
    const char *field = (const char *)&config + settings[i].offset;
    if (!settings[i].is_number)
        return *(const char *const *)field;
    snprintf(number, sizeof number, "%lld", (long long)*(const int64_t *)field);
    return number;
}

static void assert_said(const char *words)
{
    if (!strstr(said, words))
        fail_msg("'%s' is not in: %s", words, said);
}

/* The setting takes each of GOOD, and refuses each of BAD. Then it says WORDS and its flag. Both lists end with NULL. */
static void assert_values(const char *flag, const char *const *good, const char *const *bad,
                          const char *words)
{
    for (; *good; good++)
        if (load(flag, *good, NULL) != CONFIG_OK)
            fail_msg("%s refuses '%s': %s", flag, *good, said);
    for (; *bad; bad++) {
        if (load(flag, *bad, NULL) != CONFIG_BAD)
            fail_msg("%s takes '%s'", flag, *bad);
        assert_said(flag);
        assert_said(words);
    }
}

/* ---- where settings come from ----------------------------------------------------------------------------- */

static void test_defaults(void **state)
{
    assert_int_equal(load(NULL), CONFIG_OK);
    for (size_t i = 0; i < COUNT(settings); i++)
        assert_string_equal(loaded(i), settings[i].preset);
    const struct sockaddr_in *address = (const struct sockaddr_in *)&config.address;
    assert_int_equal(address->sin_family, AF_INET);
    assert_int_equal(ntohs(address->sin_port), 8080);
    assert_int_equal(ntohl(address->sin_addr.s_addr), 0x7f000001);
    assert_int_equal(config.address_size, sizeof *address);
    assert_int_equal(strategy_find(config.strategy)->guarantee,
                     GUARANTEE_SAFE); /* safe unless told otherwise */
}

static void test_the_environment(void **state)
{
    for (size_t i = 0; i < COUNT(settings); i++) {
        if (strcmp(settings[i].variable, "ADMIN_TOKEN_FILE") == 0)
            continue; /* read at once: has a separate test */
        setenv(settings[i].variable, other_value(i), 1);
        assert_int_equal(load(NULL), CONFIG_OK);
        assert_string_equal(loaded(i), other_value(i));
        setenv(settings[i].variable, "", 1); /* empty is as good as absent */
        assert_int_equal(load(NULL), CONFIG_OK);
        assert_string_equal(loaded(i), settings[i].preset);
        unsetenv(settings[i].variable);
    }
}

static void test_flags_win_over_the_environment(void **state)
{
    for (size_t i = 0; i < COUNT(settings); i++) {
        if (!settings[i].flag || strcmp(settings[i].variable, "ADMIN_TOKEN_FILE") == 0)
            continue;
        const char *preset = settings[i].preset[0] ? settings[i].preset : other_value(i);
        assert_int_equal(load(settings[i].flag, other_value(i), NULL), CONFIG_OK);
        assert_string_equal(loaded(i), other_value(i));
        setenv(settings[i].variable, other_value(i), 1);
        assert_int_equal(load(settings[i].flag, preset, NULL), CONFIG_OK);
        assert_string_equal(loaded(i), preset);
        char joined[100];
        snprintf(joined, sizeof joined, "%s=%s", settings[i].flag, preset);
        assert_int_equal(load(joined, NULL), CONFIG_OK);
        assert_string_equal(loaded(i), preset);
        unsetenv(settings[i].variable);
    }
}

static void test_forms_of_flags(void **state)
{
    assert_int_equal(load("--workers", "3", "--queue=5", "--workers=7", NULL),
                     CONFIG_OK); /* the last one counts */
    assert_true(config.workers == 7 && config.queue == 5);
    static const char url[] = "postgresql://h/d?application_name=b&connect_timeout=5";
    assert_int_equal(load("--database-url=postgresql://h/d?application_name=b&connect_timeout=5", NULL),
                     CONFIG_OK);
    assert_string_equal(config.database_url, url); /* an "=" in the value is the value's */
    assert_string_equal(config.lock_database_url, config.database_url);
    assert_int_equal(load("--lock-database-url", "postgresql://l", "--database-url", "postgresql://d", NULL),
                     CONFIG_OK);
    assert_string_equal(config.lock_database_url, "postgresql://l");
    assert_int_equal(load("--instance=", NULL), CONFIG_OK);
    assert_string_equal(config.instance, "");
    assert_int_equal(load("--instance", "--workers", NULL), CONFIG_OK); /* a value may look like a flag */
    assert_string_equal(config.instance, "--workers");
}

static void test_unknown_arguments(void **state)
{
    static const char *const unknown[] = {"--worker", "--workerss",  "--WORKERS",    "-workers",       "--",
                                          "-",        "-h",          "workers",      "--help=1",       "--=1",
                                          "",         "--workers:3", "--no-workers", "--admin-token=x"};
    for (size_t i = 0; i < COUNT(unknown); i++) {
        assert_int_equal(load(unknown[i], NULL), CONFIG_BAD);
        assert_int_equal(load(unknown[i], "1", NULL), CONFIG_BAD);
        for (size_t j = 0; j < COUNT(settings); j++) /* what is valid is listed */
            if (settings[j].flag)
                assert_said(settings[j].flag);
        assert_said("--help");
    }
    for (size_t i = 0; i < COUNT(settings); i++) { /* a flag without its value */
        if (!settings[i].flag)
            continue;
        assert_int_equal(load(settings[i].flag, NULL), CONFIG_BAD);
        assert_said(settings[i].flag);
    }
}

/* ---- values ----------------------------------------------------------------------------------------------- */

static void test_bad_numbers(void **state)
{
    /* clang-format off */
    static const char *const bad[] = {
        "-1", "+5", "", " ", " 5", "5 ", "5x", "x5", "0x10", "1e3", "1.0", "1,000", "five", "99999999999999999999",
        "-99999999999999999999", "9223372036854775808", "18446744073709551621", "--", "5\n", "\t5", "\xd9\xa5", NULL};
    /* clang-format on */
    for (size_t i = 0; i < COUNT(settings); i++) {
        if (!settings[i].is_number)
            continue;
        char range[80];
        snprintf(range, sizeof range, "from %lld to %lld", (long long)settings[i].least,
                 (long long)settings[i].most);
        assert_values(settings[i].flag, (const char *const[]){NULL}, bad, range);
        setenv(settings[i].variable, "5x", 1);
        assert_int_equal(load(NULL), CONFIG_BAD);
        assert_said(settings[i].variable);
        assert_said("5x");
        unsetenv(settings[i].variable);
    }
}

static void test_ranges(void **state)
{
    for (size_t i = 0; i < COUNT(settings); i++) {
        if (!settings[i].is_number)
            continue;
        const struct {
            int64_t value;
            enum config_result result;
        } tries[] = {{settings[i].least, CONFIG_OK},
                     {settings[i].least - 1, CONFIG_BAD},
                     {settings[i].most, CONFIG_OK},
                     {settings[i].most + 1, CONFIG_BAD}};
        for (size_t j = 0; j < COUNT(tries); j++) {
            char text[32];
            snprintf(text, sizeof text, "%lld", (long long)tries[j].value);
            if (load(settings[i].flag, text, NULL) != tries[j].result)
                fail_msg("%s %s: %s", settings[i].flag, text, tries[j].result == CONFIG_OK ? said : "taken");
            if (tries[j].result == CONFIG_OK)
                assert_string_equal(loaded(i), text);
        }
    }
}

static void test_values_of_a_list(void **state)
{
    for (size_t i = 0; i < strategy_count; i++)
        assert_int_equal(load("--strategy", strategies[i].name, NULL), CONFIG_OK);
    static const char *const no_strategies[] = {"", "nonsense", "Mutex", "mutex ", "mute"};
    for (size_t i = 0; i < COUNT(no_strategies); i++) {
        assert_int_equal(load("--strategy", no_strategies[i], NULL), CONFIG_BAD);
        for (size_t j = 0; j < strategy_count; j++)
            assert_said(strategies[j].name);
    }
    assert_values("--log-level", log_level_names, (const char *const[]){"verbose", NULL},
                  "error warning info debug");
    assert_values("--log-format", (const char *const[]){"json", NULL}, (const char *const[]){"xml", NULL},
                  "text json");
}

static void test_database_urls(void **state)
{
    static const char *const good[] = {"postgresql://u:p@h:5432/d", "postgres:///d?host=/tmp",
                                       "host=h dbname=d", "dbname=d"};
    static const char *const bad[] = {"hunter2",
                                      "mysql://u:hunter2@h/d",
                                      "postgresql://u:hunter2@[h/d",
                                      "postgresql://u:hunter2@h/d?nonsense=1",
                                      "host='hunter2",
                                      "password=hunter2 nonsense"};
    static const char *const flags[] = {"--database-url", "--lock-database-url"};
    for (size_t i = 0; i < COUNT(flags); i++) {
        for (size_t j = 0; j < COUNT(good); j++)
            assert_int_equal(load(flags[i], good[j], NULL), CONFIG_OK);
        for (size_t j = 0; j < COUNT(bad); j++) {
            if (load(flags[i], bad[j], NULL) != CONFIG_BAD)
                fail_msg("%s takes '%s'", flags[i], bad[j]);
            if (strstr(said, "hunter2")) /* it may be, or hold, a password */
                fail_msg("%s '%s' is repeated: %s", flags[i], bad[j], said);
        }
    }
}

/* ---- locks ------------------------------------------------------------------------------------------------ */

static void test_prefixes(void **state)
{
    static const char *const good[] = {"a", "-", "_.", "A-z_0.9", "abcdefghijklmnopqrstuvwxyz012345", NULL};
    static const char *const bad[] = {
        "", ".", ".a", "a/b", "a:b", "a b", "a{b", "\303\244", "abcdefghijklmnopqrstuvwxyz0123456", NULL};
    assert_values("--lock-prefix", good, bad, "1 to 32");
}

/* As many servers as the locks can use, and one more. */
static void test_lists_of_servers(void **state)
{
    static const struct {
        const char *flag, *server, *says;
        int most;
    } lists[] = {{"--redlock-urls", ",redis://localhost:6379", "names 16 servers; valid: 1 to 15", 15},
                 {"--etcd-endpoints", ",http://localhost:2379", "names 17 servers; valid: 1 to 16", 16}};
    for (size_t i = 0; i < COUNT(lists); i++) {
        char list[1000] = "";
        for (int count = 1; count <= lists[i].most + 1; count++) {
            strcat(list, lists[i].server + (count == 1));
            assert_int_equal(load(lists[i].flag, list, NULL),
                             count <= lists[i].most ? CONFIG_OK : CONFIG_BAD);
        }
        assert_said(lists[i].flag);
        assert_said(lists[i].says);
    }
}

/* ---- addresses -------------------------------------------------------------------------------------------- */

static void test_addresses(void **state)
{
    static const struct {
        const char *text, *address;
        int family;
        uint16_t port;
    } good[] = {
        {"127.0.0.1:0", "127.0.0.1", AF_INET, 0},
        {"127.0.0.1:1", "127.0.0.1", AF_INET, 1},
        {"127.0.0.1:65535", "127.0.0.1", AF_INET, 65535},
        {"127.255.0.9:80", "127.255.0.9", AF_INET, 80},
        {"localhost:8081", "127.0.0.1", AF_INET, 8081},
        {"[::1]:8080", "::1", AF_INET6, 8080},
        {"[::1]:0", "::1", AF_INET6, 0},
        {"[0:0:0:0:0:0:0:1]:65535", "::1", AF_INET6, 65535},
    };
    for (size_t i = 0; i < COUNT(good); i++) {
        if (load("--listen", good[i].text, NULL) != CONFIG_OK)
            fail_msg("%s", said);
        char text[64] = "";
        assert_int_equal(config.address.ss_family, good[i].family);
        const void *from = good[i].family == AF_INET
                               ? (void *)&((struct sockaddr_in *)&config.address)->sin_addr
                               : (void *)&((struct sockaddr_in6 *)&config.address)->sin6_addr;
        assert_non_null(inet_ntop(good[i].family, from, text, sizeof text));
        assert_string_equal(text, good[i].address);
        assert_int_equal(ntohs(((struct sockaddr_in *)&config.address)->sin_port),
                         good[i].port); /* the same place in both */
        assert_int_equal(config.address_size, good[i].family == AF_INET ? sizeof(struct sockaddr_in)
                                                                        : sizeof(struct sockaddr_in6));
    }
    /* clang-format off */
    static const char *const bad[] = {
        "", ":", "8080", ":8080", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:80x", "127.0.0.1:-1",
        "127.0.0.1:+80", "127.0.0.1: 80", "127.0.0.1:80 ", "127.0.0.1:65536", "127.0.0.1:99999999999999999999",
        "127.0.0.1:0x50", "127.0.0.1:80:80", "127.0.0:80", "127.0.0.256:80", "127.0.0.1.1:80", " 127.0.0.1:80",
        "1:80", "::1:8080", "[::1]", "[::1]:", "[::1]8080", "[::1:8080", "::1]:8080", "[]:8080", "[:80", "]:80",
        "[[::1]]:80", "[127.0.0.1]:80", "[::1%lo]:80", "[localhost]:80", "[12345::1]:80", "example.org:80",
        "LOCALHOST.:80", "*:80", "[0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0001]:80",
        "http://127.0.0.1:80", NULL};
    /* clang-format on */
    assert_values("--listen", (const char *const[]){NULL}, bad, "");
}

static void test_other_than_loopback_needs_a_token(void **state)
{
    static const char *const open[] = {
        "0.0.0.0:80", "192.168.1.2:80",   "128.0.0.1:80",          "126.255.255.255:80",
        "[::]:80",    "[2001:db8::1]:80", "[::ffff:127.0.0.1]:80", "[fe80::1]:80"};
    for (size_t i = 0; i < COUNT(open); i++) {
        assert_int_equal(load("--listen", open[i], NULL), CONFIG_BAD);
        assert_said("ADMIN_TOKEN");
        assert_said(open[i]);
        setenv("LISTEN", open[i], 1);
        assert_int_equal(load(NULL), CONFIG_BAD);
        assert_int_equal(load("--listen", "127.0.0.1:80", NULL), CONFIG_OK);
        setenv("ADMIN_TOKEN", "secret", 1);
        assert_int_equal(load(NULL), CONFIG_OK);
        assert_string_equal(config.admin_token, "secret");
        forget(NULL);
    }
}

/* ---- the token -------------------------------------------------------------------------------------------- */

/* Writes SIZE bytes to a file of the test's, and loads with it as token file. */
static enum config_result load_with_token_file(const char *bytes, size_t size)
{
    char path[] = "/tmp/test_config_XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    assert_true(write(file, bytes, size) == (ssize_t)size);
    close(file);
    enum config_result result = load("--admin-token-file", path, "--listen", "0.0.0.0:80", NULL);
    unlink(path);
    return result;
}

static void test_token_files(void **state)
{
    static const struct {
        const char *bytes, *token;
    } good[] = {{"secret", "secret"},         {"secret\n", "secret"}, {"secret\r\n", "secret"},
                {"secret\nmore\n", "secret"}, {"a b", "a b"},         {"x", "x"}};
    for (size_t i = 0; i < COUNT(good); i++) {
        assert_int_equal(load_with_token_file(good[i].bytes, strlen(good[i].bytes)), CONFIG_OK);
        assert_string_equal(config.admin_token, good[i].token);
    }
    static const char *const bad[] = {"", "\n", "\r\n", "\nsecret\n"};
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_int_equal(load_with_token_file(bad[i], strlen(bad[i])), CONFIG_BAD);
    assert_int_equal(load("--admin-token-file", "/nonexistent/token", NULL), CONFIG_BAD);
    assert_said("/nonexistent/token");
    assert_int_equal(load("--admin-token-file", "/", NULL), CONFIG_BAD);

    setenv("ADMIN_TOKEN", "from the environment", 1); /* the file wins; a bad one is not passed over */
    assert_int_equal(load_with_token_file("from the file\n", 14), CONFIG_OK);
    assert_string_equal(config.admin_token, "from the file");
    assert_int_equal(load_with_token_file("", 0), CONFIG_BAD);
}

/* A token is taken whole or not at all: one that is cut is one that is easier to guess. */
static void test_long_tokens(void **state)
{
    for (size_t length = 1; length < 1200; length += length < 300 ? 1 : 97) {
        char token[1300];
        memset(token, 't', length);
        token[length] = '\n';
        for (size_t with_newline = 0; with_newline <= 1; with_newline++)
            if (load_with_token_file(token, length + with_newline) == CONFIG_OK)
                assert_int_equal(strlen(config.admin_token), length);
            else
                assert_true(length >= 200); /* as long as anybody needs */
    }
    /* What follows a NUL would be lost, too. */
    if (load_with_token_file("se\0cret\n", 8) == CONFIG_OK)
        fail_msg("a token with a NUL is cut to '%s'", config.admin_token);
}

/* ---- help ------------------------------------------------------------------------------------------------- */

static void test_help(void **state)
{
    assert_int_equal(load("--help", NULL), CONFIG_HELP);
    assert_int_equal(load("--workers", "3", "--help", "--nonsense", NULL), CONFIG_HELP);

    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    assert_non_null(to);
    config_print_help(to);
    fclose(to);
    for (size_t i = 0; i < COUNT(settings); i++) {
        const char *names[] = {
            settings[i].flag ? settings[i].flag : settings[i].variable, settings[i].variable,
            strcmp(settings[i].variable, "LOCK_DATABASE_URL") == 0 ? "" : settings[i].preset};
        for (size_t j = 0; j < COUNT(names); j++)
            if (!strstr(text, names[j]))
                fail_msg("the help does not mention '%s'", names[j]);
    }
    for (size_t i = 0; i < strategy_count; i++)
        assert_non_null(strstr(text, strategies[i].name));
    free(text);
}

/* The help groups the settings, and explains each in one sentence of at most 20 words. */
static void test_help_is_short(void **state)
{
    static const char *const headings[] = {"\nNetwork\n", "\nServers\n", "\nOrders\n", "\nClass\n",
                                           "\nLog\n"};
    char *text = NULL, *rest, *at;
    size_t size = 0, sentences = 0;
    FILE *to = open_memstream(&text, &size);
    assert_non_null(to);
    config_print_help(to);
    fclose(to);
    at = text;
    for (size_t i = 0; i < COUNT(headings); i++) {
        at = strstr(at, headings[i]); /* in this sequence */
        if (!at)
            fail_msg("no heading '%s' where it belongs", headings[i]);
    }
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        if (strncmp(line, "        ", 8) != 0)
            continue;
        size_t words = 1, length = strlen(line);
        for (const char *space = line + 8; (space = strchr(space, ' ')) != NULL; space++)
            words++;
        if (words > 20 || line[length - 1] != '.' || strstr(line, ". "))
            fail_msg("not one sentence of at most 20 words: '%s'", line + 8);
        sentences++;
    }
    assert_int_equal(sentences, COUNT(settings) + 2); /* and the two switches */
    free(text);
}

/* --classroom takes no value, and changes where to listen and who may do what. */
static void test_a_class(void **state)
{
    assert_int_equal(load(NULL), CONFIG_OK);
    assert_true(config.classroom == 0 && !config.token_made);
    assert_int_equal(load("--classroom", NULL), CONFIG_OK);
    assert_true(config.classroom == 1 && config.token_made);
    assert_string_equal(config.listen, "0.0.0.0:8080");
    assert_int_equal(strlen(config.admin_token), 20);
    char first[32];
    snprintf(first, sizeof first, "%s", config.admin_token);
    assert_int_equal(load("--classroom", NULL), CONFIG_OK);
    assert_string_not_equal(config.admin_token, first);
    assert_int_equal(load("--classroom", "--listen", "127.0.0.1:9", NULL), CONFIG_OK);
    assert_string_equal(config.listen, "127.0.0.1:9");
    setenv("ADMIN_TOKEN", "open sesame", 1);
    setenv("CLASSROOM", "yes", 1);
    assert_int_equal(load(NULL), CONFIG_OK);
    assert_true(config.classroom == 1 && !config.token_made);
    assert_string_equal(config.admin_token, "open sesame");
    assert_int_equal(load("--classroom=no", NULL), CONFIG_OK);
    assert_true(config.classroom == 0);
    assert_int_equal(load("--classroom=maybe", NULL), CONFIG_BAD);
    assert_non_null(strstr(said, "yes no"));
    unsetenv("CLASSROOM");
}

static void test_in_turn(void **state)
{
    assert_int_equal(load(NULL), CONFIG_OK);
    assert_true(config.in_turn == 1);
    assert_int_equal(load("--in-turn=no", NULL), CONFIG_OK);
    assert_true(config.in_turn == 0);
    setenv("IN_TURN", "no", 1);
    assert_int_equal(load(NULL), CONFIG_OK);
    assert_true(config.in_turn == 0);
    assert_int_equal(load("--in-turn", NULL), CONFIG_OK);
    assert_true(config.in_turn == 1);
    unsetenv("IN_TURN");
}

/* No setting is left out of the table above: the help has as many flags as it has, the two switches and --help. */
static void test_no_setting_is_forgotten(void **state)
{
    char *text = NULL;
    size_t size = 0, flags = 0, known = 3;
    FILE *to = open_memstream(&text, &size);
    assert_non_null(to);
    config_print_help(to);
    fclose(to);
    for (const char *at = text; (at = strstr(at, "\n  --")) != NULL; at++)
        flags++;
    free(text);
    for (size_t i = 0; i < COUNT(settings); i++)
        known += settings[i].flag != NULL;
    assert_int_equal(flags, known);
}

/* Secrets have no flag, and are not repeated in what is said about them. */
static void test_secrets_are_not_told(void **state)
{
    setenv("ADMIN_TOKEN", "open sesame", 1);
    assert_int_equal(load("--listen", "nonsense", NULL), CONFIG_BAD);
    assert_null(strstr(said, "sesame"));
    assert_int_equal(load("--admin-token=open-sesame", NULL), CONFIG_BAD);
}

#define CONFIG_TEST(test) cmocka_unit_test_setup_teardown(test, forget, forget)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CONFIG_TEST(test_defaults),
        CONFIG_TEST(test_the_environment),
        CONFIG_TEST(test_flags_win_over_the_environment),
        CONFIG_TEST(test_forms_of_flags),
        CONFIG_TEST(test_unknown_arguments),
        CONFIG_TEST(test_bad_numbers),
        CONFIG_TEST(test_ranges),
        CONFIG_TEST(test_values_of_a_list),
        CONFIG_TEST(test_database_urls),
        CONFIG_TEST(test_prefixes),
        CONFIG_TEST(test_lists_of_servers),
        CONFIG_TEST(test_addresses),
        CONFIG_TEST(test_other_than_loopback_needs_a_token),
        CONFIG_TEST(test_token_files),
        CONFIG_TEST(test_long_tokens),
        CONFIG_TEST(test_help),
        CONFIG_TEST(test_help_is_short),
        CONFIG_TEST(test_a_class),
        CONFIG_TEST(test_in_turn),
        CONFIG_TEST(test_no_setting_is_forgotten),
        CONFIG_TEST(test_secrets_are_not_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
