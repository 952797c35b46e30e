/* Settings and callbacks of libcurl. */
#include "loadtest/client/http_request.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_BYTES = 1024 };

void http_reply_begin(struct http_reply *reply)
{
    reply->sent = 0;
    reply->length = 0;
    if (reply->body)
        reply->body[0] = 0;
}

void http_reply_free(struct http_reply *reply)
{
    free(reply->body);
    reply->body = NULL;
    reply->length = reply->size = 0;
}

static bool make_room(struct http_reply *reply, size_t length)
{
    size_t wanted = reply->size ? reply->size : FIRST_BYTES;
    while (wanted <= length)
        wanted *= 2;
    char *body = wanted > reply->size ? realloc(reply->body, wanted) : reply->body;
    if (!body)
        return false;
    reply->body = body;
    reply->size = wanted;
    return true;
}

/* NOLINTNEXTLINE(readability-non-const-parameter): the type is libcurl's */
static size_t keep(char *data, size_t one, size_t length, void *context)
{
    struct http_reply *reply = context;
    size_t room = reply->most - reply->length, kept = length < room ? length : room;
    (void)one; /* libcurl promises that it is 1 */
    if ((reply->whole && kept < length) || !make_room(reply, reply->length + kept))
        return 0;
    memcpy(reply->body + reply->length, data, kept);
    reply->length += kept;
    reply->body[reply->length] = 0;
    return length;
}

/* NOLINTNEXTLINE(readability-non-const-parameter): the type is libcurl's */
static int count_request(void *context, char *to, char *from, int to_port, int from_port)
{
    struct http_reply *reply = context;
    (void)to, (void)from, (void)to_port, (void)from_port;
    if (reply->once && reply->sent > 0)
        return CURL_PREREQFUNC_ABORT;
    reply->sent++;
    return CURL_PREREQFUNC_OK;
}

void http_request_prepare(CURL *curl, const char *url, struct curl_slist *headers, long timeout_ms,
                          struct http_reply *reply)
{
    http_reply_begin(reply);
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http");
    curl_easy_setopt(curl, CURLOPT_PROXY, "");
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, timeout_ms);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, keep);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, reply);
    curl_easy_setopt(curl, CURLOPT_PREREQFUNCTION, count_request);
    curl_easy_setopt(curl, CURLOPT_PREREQDATA, reply);
}

long http_request_status(CURL *curl)
{
    long status = 0;
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    return status;
}
