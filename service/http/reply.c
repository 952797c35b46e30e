/* Sets the reply of an exchange: status, headers and body. */
#include "service/http/problem.h"
#include "service/http/server.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void http_set_header(struct exchange *x, const char *name, const char *format, ...)
{
    if (x->header_count == HTTP_HEADERS_MAX)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(x->headers[x->header_count].value, sizeof x->headers[0].value, format, args);
    va_end(args);
    x->headers[x->header_count++].name = name;
}

void http_set_fixed_header(struct exchange *x, const char *name, const char *value)
{
    if (x->header_count == HTTP_HEADERS_MAX)
        return;
    x->headers[x->header_count].fixed = value;
    x->headers[x->header_count++].name = name;
}

void http_forget_reply(struct exchange *x)
{
    if (x->reply != x->room)
        free(x->reply);
    x->reply = NULL;
}

void http_reply_body(struct exchange *x, int status, const char *content_type, char *body, size_t size)
{
    http_forget_reply(x);
    x->status = status;
    x->content_type = content_type;
    x->reply = body;
    x->reply_size = size;
}

void http_reply_json(struct exchange *x, int status, json_t *json)
{
    http_reply_text(x, status, json ? json_dumps(json, JSON_COMPACT) : NULL);
    json_decref(json);
}

void http_reply_text(struct exchange *x, int status, char *text)
{
    if (text)
        http_reply_body(x, status, "application/json", text, strlen(text));
    else
        reply_problem(x, PROBLEM_INTERNAL_ERROR, NULL, "out of memory");
}
