/* The headers of a request: finds them, and checks the rules that all requests have to keep. */
#include "service/http/internal.h"

#include <stdio.h>
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

/* MHD_NO, which ends the search, at a header that RFC 9112 forbids (5.1 and 5.2): a space in its name or before the colon, or a
 * value that goes on in the next line. Somebody before us may have read "Content-Length : 5" as a length. The library hides
 * where the lines end, but leaves a header in its place, and copies only a value that it joins from several lines. */
static enum MHD_Result check_header(void *arg, enum MHD_ValueKind kind, const char *name, const char *value)
{
    (void)kind;
    bool *is_whole = arg;
    size_t length = strcspn(name, " \t");
    *is_whole = length > 0 && !name[length];
    if (*is_whole && value) {
        const char *place = name + length + 1;
        *is_whole = place + strspn(place, " \t") == value;
    }
    return *is_whole ? MHD_YES : MHD_NO;
}

bool http_has_whole_headers(const struct exchange *x)
{
    bool is_whole = true;
    MHD_get_connection_values(x->transport, MHD_HEADER_KIND, check_header, &is_whole);
    return is_whole;
}
