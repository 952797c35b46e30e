/* The addresses at which other machines reach this service: that of the teacher's page, and those of the network interfaces. */
#include "service/classroom/addresses.h"

#include "service/http/host_name.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* Interfaces of containers and virtual machines: the computers of a class are rarely connected to them. */
static bool is_virtual(const char *interface)
{
    static const char *const beginnings[] = {"docker", "br-", "veth", "virbr", "vmnet", "podman"};
    for (size_t i = 0; i < sizeof beginnings / sizeof beginnings[0]; i++)
        if (strncmp(interface, beginnings[i], strlen(beginnings[i])) == 0)
            return true;
    return false;
}

static void append(json_t *urls, const struct sockaddr *address, unsigned port)
{
    char host[INET6_ADDRSTRLEN] = "";
    bool six = address->sa_family == AF_INET6;
    const void *bytes = six ? (const void *)&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr
                            : (const void *)&((const struct sockaddr_in *)(const void *)address)->sin_addr;
    if (inet_ntop(address->sa_family, bytes, host, sizeof host))
        json_array_append_new(urls, json_sprintf(six ? "http://[%s]:%u" : "http://%s:%u", host, port));
}

static bool is_loopback(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
    return ntohl(((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr) >> 24 ==
           IN_LOOPBACKNET;
}

static bool is_any(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET6)
        return IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
    return ((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr == htonl(INADDR_ANY);
}

/* IPv4 only, because people can read out and type such an address. */
static bool is_wanted(const struct ifaddrs *one, bool virtual)
{
    return one->ifa_addr && one->ifa_addr->sa_family == AF_INET && (one->ifa_flags & IFF_UP) &&
           !(one->ifa_flags & IFF_LOOPBACK) && is_virtual(one->ifa_name) == virtual;
}

json_t *addresses_for_others(const struct config *config, unsigned port)
{
    const struct sockaddr *address = (const struct sockaddr *)&config->address;
    struct ifaddrs *all = NULL;
    json_t *urls = json_array();
    if (!urls)
        return NULL;
    if (!is_any(address)) {
        if (!is_loopback(address))
            append(urls, address, port);
        return urls;
    }
    if (getifaddrs(&all) != 0)
        return urls;
    for (int virtual = 0; virtual < 2; virtual ++)
        for (const struct ifaddrs *one = all; one; one = one->ifa_next)
            if (is_wanted(one, virtual != 0))
                append(urls, one->ifa_addr, port);
    freeifaddrs(all);
    return urls;
}

bool is_in_container(void)
{
    static const char *const files[] = {"/.dockerenv", "/run/.containerenv"};
    static const char *const variables[] = {"container", "KUBERNETES_SERVICE_HOST"};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        if (access(files[i], F_OK) == 0)
            return true;
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        const char *value = getenv(variables[i]);
        if (value && value[0])
            return true;
    }
    return false;
}

/* Each proxy of a chain may append its own scheme: the first is the browser's. (strchr finds the end of the text, too.) */
static bool is_https(const char *scheme)
{
    return scheme && strncasecmp(scheme, "https", 5) == 0 && strchr(", ", scheme[5]);
}

/* False: it leads back to the teacher's machine, is unknown, or does not fit. */
static bool use_page(const struct page_address *page, char *ret_url, size_t size)
{
    int length = 0;
    const char *named = page->origin ? strstr(page->origin, "://") : NULL;
    if (named) { /* a proxy may hide the name and the scheme from the service, but not from the page */
        if (!host_is_loopback(named + 3))
            length = snprintf(ret_url, size, "%s", page->origin);
    } else if (page->host && !host_is_loopback(page->host)) {
        length = snprintf(ret_url, size, "%s://%s", is_https(page->scheme) ? "https" : "http", page->host);
    }
    return length > 0 && (size_t)length < size;
}

enum address_source address_for_learners(const struct config *config, unsigned port,
                                         const struct page_address *page, bool in_container, char *ret_url,
                                         size_t size)
{
    if (use_page(page, ret_url, size))
        return ADDRESS_OF_PAGE;
    json_t *addresses = addresses_for_others(config, port);
    const char *first = json_string_value(json_array_get(addresses, 0));
    enum address_source source = !first         ? ADDRESS_LOOPBACK
                                 : in_container ? ADDRESS_OF_CONTAINER
                                                : ADDRESS_OF_INTERFACE;
    snprintf(ret_url, size, "%s", source == ADDRESS_OF_INTERFACE ? first : "");
    json_decref(addresses);
    return source;
}
