/* The addresses at which other machines reach this service, taken from the kernel's list of network interfaces. */
#include "service/classroom/addresses.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>

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
