/* Sends the HTTP requests of a description to a user's service. */
#include "loadtest/own/shop_http.h"

#include "loadtest/cli/interrupt.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { BODY_MAX = 1 << 20 };

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
    bool ok = add_header(headers, "Expect:"), typed = false;
    for (size_t i = 0; ok && i < request->headers.count; i++) {
        char *value = shop_expand(request->headers.value[i], values), *line = NULL;
        typed = typed || strcasecmp(request->headers.name[i], "content-type") == 0;
        ok = value && asprintf(&line, "%s: %s", request->headers.name[i], value) > 0 &&
             add_header(headers, line);
        free(value);
        free(line);
    }
    return ok && (typed || !request->body || add_header(headers, "Content-Type: application/json"));
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
    bool ok = url && body && exchange->easy && add_headers(&exchange->headers, request, values);
    if (ok) {
        CURL *easy = exchange->easy;
        curl_easy_reset(easy); /* keeps the connection */
        exchange->reply.most = BODY_MAX;
        exchange->reply.once = true; /* the service may have sold already */
        http_request_prepare(easy, url, exchange->headers, (long)timeout_ms, &exchange->reply);
        curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
        if (strcmp(request->method, "HEAD") == 0)
            curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
        else if (request->body || strcmp(request->method, "GET") != 0)
            curl_easy_setopt(easy, CURLOPT_COPYPOSTFIELDS, body);
        curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method);
        curl_easy_setopt(easy, CURLOPT_PRIVATE, exchange);
    }
    free(url);
    free(body);
    return ok;
}

void shop_exchange_close(struct shop_exchange *exchange)
{
    curl_easy_cleanup(exchange->easy);
    curl_slist_free_all(exchange->headers);
    http_reply_free(&exchange->reply);
    *exchange = (struct shop_exchange){0};
}

static void copy_text(const char *body, char ret_text[static SHOP_ANSWER_KEPT + 1])
{
    snprintf(ret_text, SHOP_ANSWER_KEPT + 1, "%s", body ? body : "");
    for (char *c = ret_text; *c; c++)
        if (*c < ' ' || *c > '~')
            *c = ' ';
}

void shop_exchange_answer(const struct shop_exchange *exchange, const struct shop_description *description,
                          CURLcode code, struct shop_answer *ret_answer)
{
    struct shop_reply reply = {.body = exchange->reply.body};
    *ret_answer = (struct shop_answer){.meaning = SHOP_UNCLEAR};
    copy_text(code == CURLE_OK ? exchange->reply.body : curl_easy_strerror(code), ret_answer->text);
    if (code != CURLE_OK)
        return;
    char *location = NULL; /* libcurl's */
    reply.status = http_request_status(exchange->easy);
    curl_easy_getinfo(exchange->easy, CURLINFO_REDIRECT_URL, &location);
    reply.location = location;
    ret_answer->status = reply.status;
    if (!description)
        return;
    ret_answer->meaning = shop_meaning_of(description, &reply);
    shop_hint_of(description, &reply, ret_answer->hint);
}

/* Sends REQUEST. DESCRIPTION: it is the request that buys; NULL: another one. */
static CURLcode send_and_wait(const struct shop_request *request, const struct shop_description *description,
                              const struct shop_values *values, int64_t timeout_ms,
                              struct shop_answer *ret_answer)
{
    struct shop_exchange exchange = {0};
    CURLcode code = CURLE_OUT_OF_MEMORY;
    if (shop_exchange_prepare(&exchange, request, values, timeout_ms)) {
        curl_easy_setopt(exchange.easy, CURLOPT_NOPROGRESS, 0L);
        curl_easy_setopt(exchange.easy, CURLOPT_XFERINFOFUNCTION, stop_if_interrupted);
        code = curl_easy_perform(exchange.easy);
    }
    shop_exchange_answer(&exchange, description, code, ret_answer);
    shop_exchange_close(&exchange);
    return code;
}

CURLcode shop_http_send(const struct shop_request *request, const struct shop_values *values,
                        int64_t timeout_ms, struct shop_answer *ret_answer)
{
    return send_and_wait(request, NULL, values, timeout_ms, ret_answer);
}

void shop_http_order(const struct shop_description *description, const struct shop_values *values,
                     struct shop_answer *ret_answer)
{
    (void)send_and_wait(&description->request, description, values, description->timeout_ms, ret_answer);
}

void shop_say_not_sold(const struct shop_description *description, const struct shop_answer *answer,
                       int64_t left)
{
    const char *text = *answer->text ? answer->text : "the answer is empty";
    if (!answer->status)
        shop_complain(description, "request",
                      "was not answered (timeout_ms is %" PRId64
                      "): %.200s. Correct the address or the service",
                      description->timeout_ms, text);
    else if (answer->meaning == SHOP_REFUSED)
        shop_complain(description, "request",
                      "was answered with %ld, sold out, although \"stock\" is %" PRId64
                      ": %.200s. Correct \"reset\" or \"request\"",
                      answer->status, left, text);
    else if (*answer->hint)
        shop_complain(description, "request",
                      "was answered with %ld, and the file does not say what that means: %.200s. Add %s",
                      answer->status, text, answer->hint);
    else
        shop_complain(description, "request",
                      "was answered with %ld, %s: %.200s. Correct the request or the service", answer->status,
                      description->all_2xx_sold ? "not with 2xx" : "which is not in \"sold\" of \"answers\"",
                      text);
}

CURLcode shop_http_listens(const char *url, const struct shop_values *values, int64_t timeout_ms)
{
    char *address = shop_expand(url, values);
    CURL *easy = curl_easy_init();
    CURLcode code = CURLE_OUT_OF_MEMORY;
    if (address && easy) {
        curl_easy_setopt(easy, CURLOPT_URL, address);
        curl_easy_setopt(easy, CURLOPT_CONNECT_ONLY, 1L);
        curl_easy_setopt(easy, CURLOPT_PROXY, "");
        curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
        curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)timeout_ms);
        code = curl_easy_perform(easy);
    }
    curl_easy_cleanup(easy);
    free(address);
    return code;
}

bool shop_http_is_refused(CURLcode code)
{
    return code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CONNECT_ERROR ||
           code == CURLE_SSL_CACERT_BADFILE;
}
