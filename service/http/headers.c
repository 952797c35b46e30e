/* The headers of a request: finds them, and checks the rules that all requests have to keep. */
#include "service/http/internal.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

const char *http_header(const struct exchange *x, const char *name)
{
    return MHD_lookup_connection_value(x->transport, MHD_HEADER_KIND, name);
}

struct header_counter {
    const char *name;
    int count;
};

static enum MHD_Result count_header(void *arg, enum MHD_ValueKind kind, const char *name, const char *value)
{
    (void)kind;
    (void)value;
    struct header_counter *counter = arg;
    if (strcasecmp(name, counter->name) == 0)
        counter->count++;
    return MHD_YES;
}

int http_header_count(const struct exchange *x, const char *name)
{
    struct header_counter counter = {name, 0};
    MHD_get_connection_values(x->transport, MHD_HEADER_KIND, count_header, &counter);
    return counter.count;
}

static bool is_sane_id(const char *id)
{
    size_t length = strspn(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:-");
    return length >= 1 && length <= 64 && !id[length];
}

void http_identify(struct exchange *x)
{
    const char *given = http_header(x, "X-Request-Id");
    if (given && is_sane_id(given))
        snprintf(x->request_id, sizeof x->request_id, "%s", given);
    else
        snprintf(x->request_id, sizeof x->request_id, "%016llx-%llu",
                 (unsigned long long)http_server->id_prefix, atomic_fetch_add(&http_server->id_count, 1));
}

/* What check_header knows of the headers before. */
struct header_walk {
    const char *end; /* of the last value, where its NUL is; NULL at the first header */
    bool is_whole;
};

/* Does nothing but the end of a line, or LINES of them, lie between two addresses? The library writes NUL over CR and LF. */
static bool are_line_ends(const char *from, const char *to, int lines)
{
    bool is_empty = to > from && to - from <= 2 * (ptrdiff_t)lines;
    for (; is_empty && from < to; from++)
        is_empty = *from == '\0';
    return is_empty;
}

/* MHD_NO, which ends the search, at a header that RFC 9112 forbids (5.1 and 5.2): a space in its name or before the colon, or a
 * value that goes on in the next line. Somebody before us may have read "Content-Length : 5" as a length. The library hides
 * where the lines end. But it leaves a header where it came, so that each begins right after the one before. When it joins
 * lines, it copies the header to another place, or leaves a gap. */
static enum MHD_Result check_header(void *arg, enum MHD_ValueKind kind, const char *name, const char *value)
{
    (void)kind;
    struct header_walk *walk = arg;
    size_t length = strcspn(name, " \t");
    const char *place = name + length + 1;
    walk->is_whole = length > 0 && !name[length] && value && place + strspn(place, " \t") == value &&
                     (!walk->end || are_line_ends(walk->end, name, 1));
    walk->end = walk->is_whole ? value + strlen(value) : NULL;
    return walk->is_whole ? MHD_YES : MHD_NO;
}

/* From 1.0 on, the library refuses such headers itself, and leaves other bytes between the lines. */
static bool has_whole_headers(const struct exchange *x)
{
    if (*MHD_get_version() != '0')
        return true;
    struct header_walk walk = {.is_whole = true};
    MHD_get_connection_values(x->transport, MHD_HEADER_KIND, check_header, &walk);
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(x->transport,
                                                                   MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    /* The size counts from the method to the empty line, and with it. */
    return walk.is_whole && (!walk.end || !info || are_line_ends(walk.end, x->method + info->header_size, 2));
}

const char *http_check_length(const struct exchange *x, int *ret_status)
{
    const char *length = http_header(x, "Content-Length");
    *ret_status = 400;
    if (!length)
        return NULL;
    if (!length[0] || length[strspn(length, "0123456789")])
        return "Content-Length must be one number, in decimal digits only";
    *ret_status = 413;
    return strtoull(length, NULL, 10) > HTTP_DISCARD_MAX ? HTTP_BODY_TOO_LARGE : NULL;
}

const char *http_check_headers(const struct exchange *x, int *ret_status)
{
    *ret_status = 400;
    if (!has_whole_headers(x))
        return "a header has a space before its colon or continues on the next line; send each header as NAME: VALUE on one line";
    /* Two lengths, or a length beside chunks, are how requests are smuggled past a proxy. */
    int encodings = http_header_count(x, "Transfer-Encoding");
    if (http_header_count(x, "Content-Length") + encodings > 1)
        return "the length of the body is given more than once; send one Content-Length or one Transfer-Encoding";
    if (http_header_count(x, "Host") > 1) /* a proxy may have checked the other one */
        return "the Host header is given more than once; send it once";
    if (encodings > 0 && strcasecmp(http_header(x, "Transfer-Encoding"), "chunked") != 0)
        return "the Transfer-Encoding is not supported; send chunked or a Content-Length";
    return http_check_length(x, ret_status);
}
