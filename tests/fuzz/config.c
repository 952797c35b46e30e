/* The configuration: each line of the input is an environment variable (NAME=VALUE), an argument (--flag, --flag=VALUE, or
 * its value on the next line), or, behind a tab, a piece of the token's file. */
#include "tests/fuzz/fuzz.h"

#include "lock/redis/client/url.h"
#include "service/config/config.h"
#include "service/config/hide_passwords.h"
#include "service/engine/strategy.h"

#include <arpa/inet.h>
#include <sys/mman.h>
#include <unistd.h>

enum { WORDS_MOST = 64 };

static FILE *nowhere;
static int token_fd;
static char token_file[40];

__attribute__((constructor)) static void set_up(void)
{
    token_fd = memfd_create("token", 0);
    nowhere = fopen("/dev/null", "we");
    MUST(token_fd >= 0 && nowhere);
    snprintf(token_file, sizeof token_file, "/proc/self/fd/%d", token_fd);
}

/* No file but this: another name could be any file of the machine. */
static char *name_file(char *line)
{
    static const char *const names[] = {"ADMIN_TOKEN_FILE=", "--admin-token-file="};
    char *named;
    for (size_t i = 0; i < 2; i++)
        if (strncmp(line, names[i], strlen(names[i])) == 0 && line[strlen(names[i])]) {
            MUST(asprintf(&named, "%s%s", names[i], token_file) > 0);
            free(line);
            return named;
        }
    return line;
}

static void look_at_servers(const char *list)
{
    const char *error = NULL;
    for (size_t length; *list; list += length + (list[length] == ',')) {
        struct redis_url url;
        length = strcspn(list, ",");
        if (redis_url_read(list, length, &url, &error))
            MUST(*url.host || *url.path);
        else
            MUST(error && *error);
    }
}

static void look_at_config(const struct config *config)
{
    bool v6 = config->address.ss_family == AF_INET6;
    const struct in6_addr *six = &((const struct sockaddr_in6 *)(const void *)&config->address)->sin6_addr;
    in_addr_t four = ((const struct sockaddr_in *)(const void *)&config->address)->sin_addr.s_addr;
    bool loopback = v6 ? IN6_IS_ADDR_LOOPBACK(six) : ntohl(four) >> 24 == 127;
    MUST(loopback || *config->admin_token); /* the promise that matters most */
    MUST(strategy_find(config->strategy));
    MUST(config->workers >= 1 && config->workers <= 256 && config->http_threads >= 1 &&
         config->http_threads <= 64);
    MUST(config->queue >= 1 && config->connections >= 1 && config->order_timeout_ms >= 100);
    MUST(config->lock_ttl_ms >= 10 && config->lock_wait_ms >= 0 && config->think_ms <= THINK_MAX_MS);
    MUST(strlen(config->instance) <= INSTANCE_MAX && *config->lock_database_url);
    look_at_servers(config->redis_url);
    look_at_servers(config->redlock_urls);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    char *words[WORDS_MOST], *argv[WORDS_MOST + 2] = {(char[]){"order-service"}};
    int count = 0, argc = 1;
    clearenv();
    MUST(ftruncate(token_fd, 0) == 0);
    for (off_t end = 0; input.left > 0 && count < WORDS_MOST; count++) {
        char *line = words[count] = name_file(fuzz_text(&input, '\n'));
        bool is_file = argc > 1 && strcmp(argv[argc - 1], "--admin-token-file") == 0;
        if (is_file) {
            argv[argc++] = token_file;
        } else if (*line == '\t') {
            MUST(pwrite(token_fd, line + 1, strlen(line) - 1, end) >= 0);
            end += (off_t)strlen(line) - 1;
        } else if (*line == '-' || !strchr(line, '=')) {
            argv[argc++] = line;
        } else if (*line != '=') {
            MUST(putenv(line) == 0);
        }
    }
    struct config config;
    if (config_load(argc, argv, &config, nowhere) == CONFIG_OK)
        look_at_config(&config);
    argv[0] = (char[]){"order-service"};
    char **copy = hide_passwords(1, argv); /* of the others some are constants */
    MUST(copy);
    free(copy[0]);
    free(copy);
    clearenv();
    while (count > 0)
        free(words[--count]);
    return 0;
}
