/* The connections of each client address, and its waiting calls: counts them, and refuses those that are too many. */
#include "service/http/internal.h"

#include "base/log.h"

#include <stdio.h>

const struct sockaddr *http_peer(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection,
                                                                   MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    return info ? info->client_addr : NULL;
}

void http_client_address(const struct exchange *x, char *ret_text, size_t size)
{
    const struct sockaddr *address = http_peer(x->transport);
    if (address)
        http_peers_name(address, ret_text, size);
    else
        snprintf(ret_text, size, "unknown");
}

bool http_address_has_limit(const struct exchange *x)
{
    const struct sockaddr *peer = http_peer(x->transport);
    return peer && http_peers_limits(http_server->peers, peer);
}

bool http_count_call(struct exchange *x, enum http_call kind, unsigned *ret_earlier)
{
    const struct sockaddr *peer = http_peer(x->transport);
    *ret_earlier = 0;
    x->kind = kind;
    x->is_counted = peer && http_peers_begin_call(http_server->peers, peer, kind, ret_earlier);
    return !peer || x->is_counted;
}

void http_on_connection(void *unused, struct MHD_Connection *connection, void **context,
                        enum MHD_ConnectionNotificationCode what)
{
    (void)unused;
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection,
                                                                       MHD_CONNECTION_INFO_CONNECTION_FD);
        *context = info ? http_timeouts_add(http_server->timeouts, info->connect_fd) : NULL;
        const struct sockaddr *peer = http_peer(connection);
        if (peer && !http_peers_add(http_server->peers, peer) && info) {
            log_seldom(LOG_WARNING, "an address has more connections than --connections-per-address allows");
            http_refuse_connection(info->connect_fd);
        }
    } else {
        if (http_own_loop)
            http_free_refused(http_own_loop, connection);
        const struct sockaddr *peer = http_peer(connection);
        if (peer)
            http_peers_remove(http_server->peers, peer);
        http_timeouts_remove(http_server->timeouts, *context);
        *context = NULL;
    }
}
