/* The description of a user's service: how to start and reset it, the request that buys, and the SQL for the stock and the sold units.
 * It is read from a file, usually shop.json, whose members docs/own-service.md explains. */
#ifndef OVERSELL_LOADTEST_OWN_DESCRIPTION_H
#define OVERSELL_LOADTEST_OWN_DESCRIPTION_H

#include "loadtest/own/placeholders.h"

#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SHOP_WORDS_MAX = 64, /* of "start" */
    SHOP_PAIRS_MAX = 64, /* variables or headers */
    SHOP_SQL_MAX = 32,   /* statements of "reset", and invariants */
    SHOP_RULES_MAX = 16  /* of each kind of answers */
};

/* Names and values, with placeholders in the values. */
struct shop_pairs {
    const char *name[SHOP_PAIRS_MAX], *value[SHOP_PAIRS_MAX];
    size_t count;
};

/* An HTTP request. Its URL, the values of its headers and its body have placeholders. */
struct shop_request {
    const char *method;
    const char *url; /* NULL: there is no such request */
    struct shop_pairs headers;
    const char *body; /* NULL: none */
};

/* What an answer means, and the list in "answers" that says so. */
enum shop_meaning {
    SHOP_REFUSED,  /* there are not enough units */
    SHOP_ACCEPTED, /* the units will be sold, or not, after the answer */
    SHOP_SOLD,
    SHOP_MEANINGS,
    SHOP_UNCLEAR = SHOP_MEANINGS, /* none of these, so it may have sold */
};

/* Which answers have a meaning: those with STATUS that fulfil all conditions that are not NULL. */
struct shop_rule {
    int64_t status;
    const char *has,
        *lacks; /* a JSON Pointer leads to a value of the body other than null, false, "", [] and {}; or it does not */
    const char *location; /* is in the address of a redirect */
    const char *text;     /* is in the body */
};

struct shop_rules {
    struct shop_rule rule[SHOP_RULES_MAX];
    size_t count;
};

/* Texts are never NULL unless this says so, belong to the description, and have placeholders unless this says otherwise. */
struct shop_description {
    const char *path;                      /* the file, as the caller named it; no copy */
    char *folder;                          /* of the file, an absolute path: the service runs there */
    const char *start[SHOP_WORDS_MAX + 1]; /* ended by NULL; none: the service runs already */
    struct shop_pairs env;                 /* added to the environment of the service */
    const char *ready;    /* URL that answers with 2xx when the service is ready; NULL: its port is open */
    const char *database; /* address of the real PostgreSQL, without placeholders; NULL: a private one */
    char *schema;         /* path of SQL for the private one; NULL: none */
    const char *redis;    /* address of the real Redis, without placeholders; NULL: a private one if … */
    bool uses_redis;      /* … the service is given the address of Redis */
    const char *reset[SHOP_SQL_MAX]; /* SQL … */
    size_t reset_count;
    struct shop_request reset_request; /* … or a request */
    struct shop_request request;       /* buys */
    int64_t units;                     /* that one request buys */
    struct shop_rules answers[SHOP_MEANINGS];
    bool all_2xx_sold;                    /* "answers" does not say which answers mean sold */
    const char *settled;                  /* SQL for true when accepted work has ended; NULL: none */
    const char *stock, *sold;             /* SQL, each for one integer */
    const char *expires;                  /* SQL, UPDATE or DELETE, that lets all leases end; NULL: none */
    const char *invariants[SHOP_SQL_MAX]; /* SQL, each for one true or false */
    size_t invariant_count;
    int64_t timeout_ms;        /* for each answer of the service */
    int64_t start_timeout_ms;  /* until the service is ready */
    int64_t settle_timeout_ms; /* until "settled" is true */
    /* The rest is for description.c. */
    json_t *document;
    char *text; /* of the file */
    char *body_text, *reset_body_text;
};

/* Reads and checks the file at PATH. False, having said on stderr what is wrong, in which line and member; then there is nothing
 * to free. Reads files and the environment only. Any thread, if no other writes to stderr. */
bool shop_description_read(const char *path, struct shop_description *ret_description);
void shop_description_free(struct shop_description *description);

/* Says on stderr what is wrong with MEMBER ("request.url"; "": the file), with the file and the line. */
__attribute__((format(printf, 3, 4))) void shop_complain(const struct shop_description *description,
                                                         const char *member, const char *format, ...);

/* The rule has more conditions than the status. */
bool shop_rule_looks_inside(const struct shop_rule *rule);

#endif
