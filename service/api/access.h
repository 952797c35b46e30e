/* Who may make which call: the teacher, a learner with a sandbox, or anybody. */
#ifndef OVERSELL_SERVICE_API_ACCESS_H
#define OVERSELL_SERVICE_API_ACCESS_H

#include "service/api/service.h"

/* Who may make a call. Without an admin token every caller counts as the teacher, because then only this machine's users can
 * reach the service. */
enum access {
    ACCESS_ANYBODY,
    ACCESS_TEACHER, /* a caller with the admin token */
    ACCESS_OWNER, /* the teacher, or a learner with a sandbox's token; the handler then asks access_owns for the product */
    ACCESS_BUYER,   /* anybody; in a class as ACCESS_OWNER */
    ACCESS_LEARNER, /* the teacher; in a class also a caller with the class code */
};

/* exchange.caller: the learner who has this product as a sandbox, or one of these. */
enum { CALLER_TEACHER = -1, CALLER_ANYBODY };

/* Does the call come from the teacher? */
static inline bool access_teaches(const struct exchange *x)
{
    return x->caller == CALLER_TEACHER;
}

/* The product that the caller has as a sandbox; 0: the caller is no learner. */
static inline int64_t access_sandbox(const struct exchange *x)
{
    return x->caller > 0 ? x->caller : 0;
}

/* Finds out who makes the call, notes it in the exchange, and checks it against ACCESS. Each of the functions from here on
 * returns false if it has replied with the problem. Any thread that has the exchange may call. */
bool access_allows(struct exchange *x, struct service *service, enum access access);
/* Logs, as a failed login, that X brought something that is not valid as a token for this call. At most some lines a second for
 * each address. */
void access_log_wrong_token(struct exchange *x);
/* May the caller change this product? PRODUCT_ID 0: all products. */
bool access_owns(struct exchange *x, int64_t product_id);
/* May the caller order this product? In a class as access_owns; otherwise always. */
bool access_orders(struct exchange *x, int64_t product_id);
/* May the caller place orders under the strategy? In a class only the teacher may use a strategy that locks more than one
 * product, because it would block all other learners. */
bool access_uses(struct exchange *x, const struct strategy *strategy);

#endif
