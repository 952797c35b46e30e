/* An exchange without a connection: its headers come from a list, in place of libmicrohttpd's. It defines that
 * library's functions which service/http calls for an exchange, so one file of a program includes it. */
#ifndef OVERSELL_TESTS_UNIT_SERVICE_HTTP_FAKE_EXCHANGE_H
#define OVERSELL_TESTS_UNIT_SERVICE_HTTP_FAKE_EXCHANGE_H

#include "tests/unit/unit.h"

#include "service/api/api.h"

#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

enum { FAKE_HEADERS_MAX = 8 };

/* What stands for the library's connection. */
struct fake_connection {
    struct {
        const char *name, *value;
    } headers[FAKE_HEADERS_MAX];
    int suspended, resumed;
};

struct fake_exchange {
    struct exchange x;
    struct fake_connection connection;
    struct service *service;
};

const char *MHD_lookup_connection_value(struct MHD_Connection *connection, enum MHD_ValueKind kind,
                                        const char *key)
{
    const struct fake_connection *c = (const void *)connection;
    assert_int_equal(kind, MHD_HEADER_KIND);
    for (int i = 0; i < FAKE_HEADERS_MAX && c->headers[i].name; i++)
        if (strcasecmp(c->headers[i].name, key) == 0)
            return c->headers[i].value;
    return NULL;
}

int MHD_get_connection_values(struct MHD_Connection *connection, enum MHD_ValueKind kind,
                              MHD_KeyValueIterator iterator, void *arg)
{
    const struct fake_connection *c = (const void *)connection;
    int count = 0;
    for (; count < FAKE_HEADERS_MAX && c->headers[count].name; count++)
        if (iterator && iterator(arg, kind, c->headers[count].name, c->headers[count].value) != MHD_YES)
            break;
    return count;
}

const union MHD_ConnectionInfo *MHD_get_connection_info(struct MHD_Connection *connection,
                                                        enum MHD_ConnectionInfoType type, ...)
{
    return NULL;
}

void MHD_suspend_connection(struct MHD_Connection *connection)
{
    ((struct fake_connection *)(void *)connection)->suspended++;
}

void MHD_resume_connection(struct MHD_Connection *connection)
{
    ((struct fake_connection *)(void *)connection)->resumed++;
}

/* Sets up an exchange with a body of SIZE bytes (copied with a NUL, as service/http/exchange.c does) or none. */
static inline void fake_request(struct fake_exchange *fake, const char *method, const char *path,
                                const char *body, size_t size)
{
    *fake = (struct fake_exchange){.service = fake->service};
    fake->x.method = method;
    fake->x.path = strdup(path);
    fake->x.app = fake->service;
    fake->x.transport = &fake->connection;
    strcpy(fake->x.request_id, "the-id");
    if (!body)
        return;
    fake->x.body = malloc(size + 1); /* no more, so that a read beyond it is seen */
    assert_non_null(fake->x.body);
    memcpy(fake->x.body, body, size);
    fake->x.body[size] = '\0';
    fake->x.body_size = size;
}

static inline void fake_header(struct fake_exchange *fake, const char *name, const char *value)
{
    int i = 0;
    while (fake->connection.headers[i].name)
        i++;
    assert_true(i < FAKE_HEADERS_MAX - 1);
    fake->connection.headers[i].name = name;
    fake->connection.headers[i].value = value;
}

static inline void fake_free(struct fake_exchange *fake)
{
    free(fake->x.path);
    free(fake->x.query);
    free(fake->x.body);
    http_forget_reply(&fake->x);
    *fake = (struct fake_exchange){.service = fake->service};
}

/* Is the reply the problem TYPE with STATUS, whole and well formed? WHAT is named where it is not. */
static inline void assert_problem(const struct fake_exchange *fake, int status, const char *type,
                                  const char *what)
{
    const struct exchange *x = &fake->x;
    if (x->status != status)
        fail_msg("%s: %d %.*s, not %d", what, x->status, (int)x->reply_size, x->reply ? x->reply : "",
                 status);
    assert_string_equal(x->content_type, "application/problem+json");
    AUTO_JSON problem = json_loadb(x->reply, x->reply_size, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(problem);
    char uri[80];
    snprintf(uri, sizeof uri, "/problems/%s", type);
    const char *got = json_string_value(json_object_get(problem, "type"));
    if (!got || strcmp(got, uri) != 0)
        fail_msg("%s: %s, not %s", what, got ? got : "no type", uri);
    assert_int_equal(json_integer_value(json_object_get(problem, "status")), status);
    assert_true(json_string_length(json_object_get(problem, "title")) > 0);
    assert_true(json_string_length(json_object_get(problem, "detail")) > 0);
    assert_string_equal(json_string_value(json_object_get(problem, "request_id")), "the-id");
}

#endif
