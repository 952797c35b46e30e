/* The interface between the gate and a protocol: where a unit that the service sends ends, its text, and the text of the server's
 * answer. A unit is one piece of work for the server, such as a statement. */
#ifndef OVERSELL_LOADTEST_OWN_GATE_WIRE_PROTOCOL_H
#define OVERSELL_LOADTEST_OWN_GATE_WIRE_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MESSAGE_WRONG SIZE_MAX
enum {
    MESSAGE_MAX = 8 * 1024 * 1024, /* bytes of one message */
    MESSAGE_TEXT = 400,            /* of a description, with the NUL; the rest is cut off */
    MESSAGE_KEYS = 256,            /* of the keys of a command */
    STATEMENTS_TEXT = 4096,        /* of the statements of a unit, with the NUL */
};

/* One connection of the service, as the explorer may see it between gate_lock and gate_unlock. */
struct gate_connection {
    bool used;
    size_t server;     /* index of the gate's server */
    unsigned port;     /* of the gate's end of the connection to the server; 0: it has none */
    size_t queued;     /* bytes of the service behind the statement that waits or runs */
    bool starts;       /* the server does not take statements yet */
    bool held;         /* a statement waits for its release */
    bool trivial;      /* it changes and reads nothing: BEGIN, SET, or a preparation */
    bool begins;       /* BEGIN comes with it: it runs in a transaction */
    bool running;      /* a statement was released, and the server has not finished it */
    bool keep_answers; /* set by the explorer: what the server answers is held back */
    bool has_answers;  /* there is some */
    char transaction;  /* 'I': none, 'T': open, 'E': failed */
    char after; /* the same when the last statement that was not trivial had ended; NUL: there was none */
    bool serializable; /* the service has named this isolation level on it */
    bool repeatable;   /* or REPEATABLE READ */
    int owner;         /* set by the explorer */
    int host;          /* and the request that has run a statement in the open transaction; GATE_NO_OWNER */
    int claim; /* and the request that has sent the held statement, if it sends several at a time; else GATE_NO_OWNER */
    int32_t pid;             /* of PostgreSQL's process */
    char text[MESSAGE_TEXT]; /* the held or running statement, with its parameters */
    /* The same without parameters, to its end; "" if that is not known, or longer. */
    char statements[STATEMENTS_TEXT];
    char answer[MESSAGE_TEXT]; /* its first row, its command tag or its error */
    char sqlstate[6];          /* of its error; "": it had none */
    bool deadlock;             /* PostgreSQL ended the transaction because of a deadlock */
    /* Of a command to Redis. */
    char shape
        [MESSAGE_TEXT]; /* its name and keys without what looks like an identifier: the same in each run; PostgreSQL: empty */
    char keys[MESSAGE_KEYS]; /* each ended by NUL, the list by an empty one; a long list is cut off */
    bool may_lock;           /* it can take a lock */
    bool may_wait;           /* Redis can let it wait for another command */
    bool whole;              /* the statement ends with the server's word that it is ready for the next one */
    bool splits;         /* set by the explorer: its COMMIT is held as well, as if it were in a transaction */
    bool commits;        /* the held statement is that COMMIT, which the service has not sent */
    bool remembers;      /* Redis keeps a MULTI or WATCH of this connection */
    const char *problem; /* why the connection cannot be held; NULL: it can */
    const char *hint;    /* why the service has probably closed it, if it does so now; NULL */
};

enum unit_way {
    UNIT_HELD,     /* it waits until the explorer releases it */
    UNIT_PASSES,   /* it is forwarded at once */
    UNIT_ANSWERED, /* it is not forwarded: the gate answers */
};

struct wire_bytes {
    const char *bytes;
    size_t length;
};

struct wire_unit {
    /* in bytes; 0: it is not complete, or its turn has not come; MESSAGE_WRONG: close the connection */
    size_t length;
    enum unit_way way;
    const char *answer; /* of UNIT_ANSWERED */
};

/* The functions are pure but for STATE and SEEN. They are called with COUNT > 0 bytes, once for each unit and message that is complete. */
struct wire_protocol {
    const char *server;         /* its name */
    const char *port;           /* the usual one */
    const char *socket;         /* a socket's name in a folder, up to the port; NULL: the server has none */
    size_t state_size;          /* of what a connection remembers, which begins as zeros */
    struct wire_bytes too_many; /* the answer to a connection for which there is no room */
    bool greets;                /* a new connection does not take statements at once */
    struct wire_unit (*next_unit)(void *state, struct gate_connection *seen, const char *bytes, size_t count);
    /* The length of the server's next message, or 0 or MESSAGE_WRONG. Clears RUNNING when the unit is finished. */
    size_t (*next_answer)(void *state, struct gate_connection *seen, const char *bytes, size_t count);
    /* What the gate sends itself around a unit that splits: they begin a transaction and end it. Length 0: units cannot be split. Of the
     * answers to the last two the service gets the messages whose types are in KEPT. */
    struct wire_bytes opens, commits, rolls_back;
    const char *kept;
    /* The held unit is not to be done: returns an error for the service. NULL: the connection is closed instead. */
    const char *(*refuse)(void *state);
};

extern const struct wire_protocol postgres_protocol, redis_protocol;

#endif
