/* Checks the Host header of a call against the names that the service accepts. */
#include "service/http/host_name.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { NAME_MAX_SIZE = 256 };

/* Copies the name from NAME, NAME:PORT or [ADDRESS]:PORT. False: HOST has another form. *ret_v6: there were brackets. */
static bool split(const char *host, char ret_name[static NAME_MAX_SIZE], bool *ret_v6)
{
    *ret_v6 = host[0] == '[';
    host += *ret_v6;
    size_t length = strcspn(host, *ret_v6 ? "]" : ":");
    if (length == 0 || length >= NAME_MAX_SIZE)
        return false;
    memcpy(ret_name, host, length);
    ret_name[length] = '\0';
    const char *rest = host + length;
    if (*ret_v6 && *rest++ != ']')
        return false;
    return !*rest || (*rest == ':' && !rest[1 + strspn(rest + 1, "0123456789")]);
}

static bool is_listed(const char *name, const char *list)
{
    size_t length = strlen(name);
    for (const char *at = list; *at; at += *at == ',') {
        size_t size = strcspn(at, ",");
        if (size == length && strncasecmp(at, name, size) == 0)
            return true;
        at += size;
    }
    return false;
}

bool host_is_allowed(const char *host, const char *allowed)
{
    char name[NAME_MAX_SIZE], own[NAME_MAX_SIZE] = "";
    unsigned char address[sizeof(struct in6_addr)];
    bool v6;
    if (!split(host, name, &v6))
        return false;
    if (v6)
        return inet_pton(AF_INET6, name, address) == 1;
    if (inet_pton(AF_INET, name, address) == 1 || strcasecmp(name, "localhost") == 0)
        return true;
    if (gethostname(own, sizeof own - 1) == 0 && strcasecmp(name, own) == 0)
        return true;
    return is_listed(name, allowed);
}

static bool ends_with(const char *name, const char *end)
{
    size_t length = strlen(name), size = strlen(end);
    return length >= size && strcasecmp(name + length - size, end) == 0;
}

bool host_is_loopback(const char *host)
{
    char name[NAME_MAX_SIZE];
    struct in_addr four;
    struct in6_addr six;
    bool v6;
    if (!split(host, name, &v6))
        return false;
    if (v6) {
        if (inet_pton(AF_INET6, name, &six) != 1)
            return false;
        if (!IN6_IS_ADDR_V4MAPPED(&six))
            return IN6_IS_ADDR_LOOPBACK(&six) || IN6_IS_ADDR_UNSPECIFIED(&six);
        memcpy(&four, six.s6_addr + 12, sizeof four);
    } else if (inet_pton(AF_INET, name, &four) != 1) {
        return strcasecmp(name, "localhost") == 0 || ends_with(name, ".localhost");
    }
    return four.s_addr == htonl(INADDR_ANY) || ntohl(four.s_addr) >> 24 == IN_LOOPBACKNET;
}

bool host_names_are_valid(const char *text)
{
    static const char LETTERS[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.";
    for (;; text++) {
        size_t length = strspn(text, LETTERS);
        text += length;
        if (length == 0 || (*text && *text != ','))
            return false;
        if (!*text)
            return true;
    }
}

bool host_is_well_formed(const char *host)
{
    char name[NAME_MAX_SIZE];
    struct in6_addr six;
    bool v6;
    if (!split(host, name, &v6))
        return false;
    return v6 ? inet_pton(AF_INET6, name, &six) == 1 : !strchr(name, ',') && host_names_are_valid(name);
}
