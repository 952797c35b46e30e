/* Finds out from the token of a call who makes it, and what that caller may do. */
#include "service/api/access.h"

#include "base/log.h"
#include "base/secret.h"
#include "service/api/router.h"
#include "service/classroom/sandbox.h"
#include "service/http/problem.h"

#include <string.h>
#include <strings.h>

/* The bearer token that the call brings, or "" where it brings none, or something that is no bearer token. */
static const char *token_of(const struct exchange *x)
{
    const char *header = http_header(x, "Authorization");
    return header && strncasecmp(header, "Bearer ", 7) == 0 ? header + 7 : "";
}

/* Every use of a wrong token is a failed login, also where the call needs none: GET /classroom tells whether a token is the
 * teacher's. The line does not contain the token. */
void access_log_wrong_token(struct exchange *x)
{
    char address[64];
    http_client_address(x, address, sizeof address);
    log_bounded(LOG_WARNING, address, "a call from %s brought a token that is not valid for %s %s%s", address,
                x->method, x->route->path);
}

bool access_allows(struct exchange *x, struct service *service, enum access access)
{
    const char *token = token_of(x), *admin = service->config.admin_token;
    bool classroom = service->config.classroom != 0;
    x->caller = !admin[0] || same_secret(token, admin) ? CALLER_TEACHER
                                                       : sandbox_owned(service->sandboxes, token);
    bool has_code = classroom && sandboxes_is_code(service->sandboxes, token);
    bool allowed = access_teaches(x);
    switch (access) {
    case ACCESS_ANYBODY: allowed = true; break;
    case ACCESS_TEACHER: break;
    case ACCESS_OWNER: allowed |= access_sandbox(x) != 0; break;
    case ACCESS_BUYER: allowed |= !classroom || access_sandbox(x) != 0; break;
    case ACCESS_LEARNER: allowed |= has_code; break;
    }
    bool brings_any = http_header(x, "Authorization") != NULL;
    if (brings_any && (!allowed || (x->caller == CALLER_ANYBODY && !has_code)))
        access_log_wrong_token(x);
    if (!allowed && sandbox_was_evicted(service->sandboxes, token))
        reply_problem(
            x, PROBLEM_UNAUTHORIZED, NULL,
            "The teacher ended this sandbox. Enter the class code on the page to join the class again");
    else if (!allowed)
        reply_problem(x, PROBLEM_UNAUTHORIZED, NULL, "send the header Authorization: Bearer TOKEN with %s",
                      access == ACCESS_TEACHER   ? "the admin token"
                      : access == ACCESS_LEARNER ? "the class code"
                                                 : "the admin token, or your sandbox's");
    return allowed;
}

bool access_owns(struct exchange *x, int64_t product_id)
{
    /* The token is checked again, because the sandbox may have gone to another learner while the call waited. */
    struct sandboxes *sandboxes = ((struct service *)x->app)->sandboxes;
    if (access_teaches(x) || (product_id != 0 && access_sandbox(x) == product_id &&
                              sandbox_owned(sandboxes, token_of(x)) == product_id))
        return true;
    reply_problem(
        x, PROBLEM_NOT_YOURS, NULL,
        "product %lld is not your sandbox; use the product of your sandbox, or join the class again if it has ended",
        (long long)product_id);
    return false;
}

bool access_orders(struct exchange *x, int64_t product_id)
{
    return !((struct service *)x->app)->config.classroom || access_owns(x, product_id);
}

bool access_uses(struct exchange *x, const struct strategy *strategy)
{
    const struct service *service = x->app;
    if (access_teaches(x) || !service->config.classroom || !strategy->take_stock->locks_all)
        return true;
    reply_problem(
        x, PROBLEM_NOT_YOURS, NULL,
        "%s locks the products of all learners, so only the teacher can use it here; try it step by step at /steps",
        strategy->name);
    return false;
}
