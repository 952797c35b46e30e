/* Sends the HTTP requests of a description to a user's service. */
#include "loadtest/own/shop_http.h"

#include "loadtest/cli/interrupt.h"
#include "loadtest/client/http_request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* NOLINTNEXTLINE(readability-non-const-parameter): the type is libcurl's */
static size_t keep_answer(char *data, size_t size, size_t count, void *context)
{
    struct shop_exchange *exchange = context;
    size_t length = size * count, room = SHOP_ANSWER_KEPT - exchange->length,
           taken = length < room ? length : room;
    memcpy(exchange->answer + exchange->length, data, taken);
    for (size_t i = exchange->length; i < exchange->length + taken; i++)
        if (exchange->answer[i] < ' ' || exchange->answer[i] > '~')
            exchange->answer[i] = ' ';
    exchange->length += taken;
    exchange->answer[exchange->length] = 0;
    return length;
}

/* Libcurl sends a request again if a connection that was used before breaks; but the service may have sold already. */
/* NOLINTNEXTLINE(readability-non-const-parameter): the type is libcurl's */
static int send_once(void *context, char *to, char *from, int to_port, int from_port)
{
    struct shop_exchange *exchange = context;
    (void)to, (void)from, (void)to_port, (void)from_port;
    if (exchange->sent)
        return CURL_PREREQFUNC_ABORT;
    exchange->sent = true;
    return CURL_PREREQFUNC_OK;
}

static int stop_if_interrupted(void *context, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    (void)context, (void)a, (void)b, (void)c, (void)d;
    return interrupted() != 0;
}

static bool add_header(struct curl_slist **headers, const char *line)
{
    struct curl_slist *longer = curl_slist_append(*headers, line);
    if (longer)
        *headers = longer;
    return longer != NULL;
}

static bool add_headers(struct curl_slist **headers, const struct shop_request *request,
                        const struct shop_values *values)
{
    /* No pause before the body. */
    bool well = add_header(headers, "Expect:"), typed = false;
    for (size_t i = 0; well && i < request->headers.count; i++) {
        char *value = shop_expand(request->headers.value[i], values), *line = NULL;
        typed = typed || strcasecmp(request->headers.name[i], "content-type") == 0;
        well = value && asprintf(&line, "%s: %s", request->headers.name[i], value) > 0 &&
               add_header(headers, line);
        free(value);
        free(line);
    }
    return well && (typed || !request->body || add_header(headers, "Content-Type: application/json"));
}

bool shop_exchange_prepare(struct shop_exchange *exchange, const struct shop_request *request,
                           const struct shop_values *values, int64_t timeout_ms)
{
    char *url = shop_expand(request->url, values);
    char *body = shop_expand(request->body ? request->body : "", values);
    if (!exchange->easy)
        exchange->easy = curl_easy_init();
    curl_slist_free_all(exchange->headers);
    exchange->headers = NULL;
    bool well = url && body && exchange->easy && add_headers(&exchange->headers, request, values);
    if (well) {
        CURL *easy = exchange->easy;
        curl_easy_reset(easy); /* keeps the connection */
        http_request_prepare(easy, url, exchange->headers, (long)timeout_ms, keep_answer, exchange);
        curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
        if (strcmp(request->method, "HEAD") == 0)
            curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
        else if (request->body || strcmp(request->method, "GET") != 0)
            curl_easy_setopt(easy, CURLOPT_COPYPOSTFIELDS, body);
        curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method);
        curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, send_once);
        curl_easy_setopt(easy, CURLOPT_PREREQDATA, exchange);
        curl_easy_setopt(easy, CURLOPT_PRIVATE, exchange);
        exchange->sent = false;
        exchange->length = 0;
        exchange->answer[0] = 0;
    }
    free(url);
    free(body);
    return well;
}

void shop_exchange_close(struct shop_exchange *exchange)
{
    curl_easy_cleanup(exchange->easy);
    curl_slist_free_all(exchange->headers);
    *exchange = (struct shop_exchange){0};
}

long shop_http_send(const struct shop_request *request, const struct shop_values *values, int64_t timeout_ms,
                    char *ret_error, size_t size)
{
    struct shop_exchange exchange = {0};
    long status = 0;
    CURLcode code = CURLE_OUT_OF_MEMORY;
    if (shop_exchange_prepare(&exchange, request, values, timeout_ms)) {
        curl_easy_setopt(exchange.easy, CURLOPT_NOPROGRESS, 0L);
        curl_easy_setopt(exchange.easy, CURLOPT_XFERINFOFUNCTION, stop_if_interrupted);
        code = curl_easy_perform(exchange.easy);
    }
    if (code == CURLE_OK)
        curl_easy_getinfo(exchange.easy, CURLINFO_RESPONSE_CODE, &status);
    snprintf(ret_error, size, "%s", code == CURLE_OK ? exchange.answer : curl_easy_strerror(code));
    shop_exchange_close(&exchange);
    return status;
}

bool shop_http_listens(const char *url, const struct shop_values *values, int64_t timeout_ms)
{
    char *address = shop_expand(url, values);
    CURL *easy = curl_easy_init();
    bool listens = false;
    if (address && easy) {
        curl_easy_setopt(easy, CURLOPT_URL, address);
        curl_easy_setopt(easy, CURLOPT_CONNECT_ONLY, 1L);
        curl_easy_setopt(easy, CURLOPT_PROXY, "");
        curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
        curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)timeout_ms);
        listens = curl_easy_perform(easy) == CURLE_OK;
    }
    curl_easy_cleanup(easy);
    free(address);
    return listens;
}
