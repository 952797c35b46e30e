/* Lets learners join a class, so that a benchmark can send the requests of their open pages. */
#include "loadtest/client/class_pages.h"

#include "loadtest/cli/complain.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Adds the token of one more learner to ENV. */
static bool join(struct service_client *learner, int64_t number, char *env)
{
    char name[40];
    size_t length = strlen(env);
    snprintf(name, sizeof name, "Learner %" PRId64, number);
    json_auto_t *place = service_client_join(learner, name);
    const char *token = json_string_value(json_object_get(place, "token"));
    if (!place)
        return service_client_failed(learner);
    if (token && snprintf(env + length, CLASS_PAGES_SIZE - length, "%s%s", number > 1 ? "," : "", token) <
                     (int)(CLASS_PAGES_SIZE - length))
        return true;
    complain("the service gave a learner no token, or one that is too long");
    return false;
}

bool class_pages_join(struct service_client *teacher, int64_t learners, char ret_env[static CLASS_PAGES_SIZE])
{
    snprintf(ret_env, CLASS_PAGES_SIZE, "PAGES_LEARNERS=");
    if (learners == 0)
        return true;
    json_auto_t *board = service_client_class_board(teacher);
    const char *code = json_string_value(json_object_get(board, "code"));
    if (!board)
        return service_client_failed(teacher);
    struct service_client *learner = service_client_open(service_client_url(teacher), code);
    bool well = learner != NULL;
    if (!well)
        complain("out of memory");
    for (int64_t i = 1; i <= learners && well; i++)
        well = join(learner, i, ret_env);
    service_client_close(learner);
    return well;
}
