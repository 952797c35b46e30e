/* Who may do what: the teacher, a learner with a sandbox, anybody. */
#ifndef OVERSELL_SERVICE_API_ACCESS_H
#define OVERSELL_SERVICE_API_ACCESS_H

#include "service/api/service.h"

/* Who may make a call. Without an admin token everybody is the teacher, since nobody else than this machine's users can
 * reach the service then. */
enum access {
    ANYBODY,
    TEACHER, /* who has the admin token */
    OWNER,   /* the teacher, or who has the sandbox's token: access_owns says of which product */
    BUYER,   /* anybody; in a classroom as OWNER */
    LEARNER, /* the teacher, or in a classroom who has the class code */
};

/* Finds out who makes the call, and whether that is enough for ACCESS; false with a reply made. */
bool access_allows(struct exchange *x, struct service *service, enum access access);
/* May the caller change this product, or order it in a classroom? False with a reply made. PRODUCT_ID 0: all of them. */
bool access_owns(struct exchange *x, int64_t product_id);
/* May the caller order this product? In a classroom as access_owns, else always. False with a reply made. */
bool access_orders(struct exchange *x, int64_t product_id);
/* May the caller place orders under the strategy? In a class only the teacher may use a strategy that locks more than one
 * product, because it would block all other learners. False: the reply has been made. */
bool access_uses(struct exchange *x, const struct strategy *strategy);

#endif
