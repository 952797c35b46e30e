/* A TCP proxy on loopback that breaks connections as networks do. Each proxy has its own thread. Any thread may call. */
#ifndef OVERSELL_LOADTEST_FAULTS_TESTBED_PROXY_H
#define OVERSELL_LOADTEST_FAULTS_TESTBED_PROXY_H

#include <stdbool.h>
#include <stdint.h>

#define HELD_FOREVER INT64_MAX

struct proxy;

enum direction { TO_SERVER, TO_CLIENT };

/* What the proxy does to the data that it forwards. All zero: nothing. */
struct proxy_rules {
    bool stall[2];    /* by direction: nothing is passed on, and nothing is ended: a half-open connection */
    int64_t delay_ms; /* everything is passed on so much later, in either direction */
    int64_t piece;    /* in pieces of N bytes; 0: as it comes */
    /* by direction: after N bytes more, of all connections together, the one that carries the next byte is reset, once; 0: never */
    int64_t cut_after[2];
    /* When a client sends this name (up to 62 bytes; PostgreSQL's protocol puts a zero byte before and after a name), the proxy
     * waits for the server's reply, discards it, and resets the connection. This happens once. NULL: never. */
    const char *lose_reply_to;
    int64_t spare; /* with lose_reply_to: how many reads with such a message pass before one is hit */
    /* With lose_reply_to, not 0: the proxy resets the client at once, and forwards the message after this delay, or never. */
    int64_t held_ms;
};

/* Listens on a free port, and stands before 127.0.0.1:PORT, or before nobody yet (0). NULL: it cannot. */
struct proxy *proxy_open(int port);
/* Where what is new is passed on to from now on. */
void proxy_aim(struct proxy *proxy, int port);
int proxy_port(const struct proxy *proxy);
/* The rules from now on, for the connections that there are as well; what waits goes out by the new ones. Counts start again. */
void proxy_set(struct proxy *proxy, const struct proxy_rules *rules);
/* Resets all connections; those that stood still, and had something to pass on, are counted as acted on. */
void proxy_cut(struct proxy *proxy);
/* It has connections now. */
bool proxy_carries(struct proxy *proxy);
/* How often a rule has done something to what is passed on, or stopped it. */
int64_t proxy_acted(const struct proxy *proxy);
/* NULL does nothing. */
void proxy_close(struct proxy *proxy);

#endif
