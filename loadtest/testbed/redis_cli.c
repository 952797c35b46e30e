/* What an operator would type into redis-cli, for a Redis server of the private stack. */
#include "loadtest/testbed/redis_cli.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define REPLY_S 2

bool redis_address(const char *url, int place, char *ret_password, int *ret_port)
{
    for (; url && place > 0; place--) {
        url = strchr(url, ',');
        url += url != NULL;
    }
    return url && sscanf(url, "redis://default:%127[^@]@127.0.0.1:%d", ret_password, ret_port) == 2;
}

static int reach(int port)
{
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct timeval limit = {.tv_sec = REPLY_S};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0 &&
        connect(fd, (struct sockaddr *)&at, sizeof at) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

/* Reads lines until QUIT's own, the last; true where none is an error. */
static bool replies_well(int fd)
{
    char text[4096];
    size_t length = 0;
    ssize_t got;
    while (length < sizeof text - 1 && (got = recv(fd, text + length, sizeof text - 1 - length, 0)) > 0)
        length += (size_t)got;
    text[length] = 0;
    return strncmp(text, "+OK\r\n", 5) == 0 && length > 5 && text[5] != '-' && strstr(text + 5, "+OK\r\n");
}

bool redis_tell(const char *url, int place, const char *format, ...)
{
    char password[128], command[REDIS_COMMAND_MAX + 1], text[REDIS_COMMAND_MAX + 200];
    int port;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(command, sizeof command, format, arguments);
    va_end(arguments);
    if (!redis_address(url, place, password, &port))
        return false;
    int length = snprintf(text, sizeof text, "AUTH %s\r\n%s\r\nQUIT\r\n", password, command);
    int fd = reach(port);
    if (fd < 0)
        return false;
    bool ok = length < (int)sizeof text && send(fd, text, (size_t)length, MSG_NOSIGNAL) == length &&
              replies_well(fd);
    close(fd);
    return ok;
}
