/* One order service, seen from outside: the calls of its HTTP API that a load test needs. */
#include "loadtest/client/service_client.h"

#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/client/http_request.h"
#include "loadtest/json/members.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONNECT_MS 30000L
#define CALL_MS 60000L /* a reset waits for orders in flight, a switch for those admitted before */
#define CLEANUP_MS 5000L
#define REPLY_MAX (32u << 20)
#define TRACES_WANTED 1000 /* as many as the service gives */

struct service_client {
    CURL *curl;
    struct curl_slist *headers;
    char *url;
    bool cleaning_up;
    const char *key; /* Idempotency-Key of the next call; NULL: none */
    char error[512];
};

struct reply {
    long status;
    struct http_reply http;
};

/* ---- one call ------------------------------------------------------------------------------------------ */

__attribute__((format(printf, 2, 3))) static void set_error(struct service_client *client, const char *format,
                                                            ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(client->error, sizeof client->error, format, arguments);
    va_end(arguments);
}

static int stop_when_interrupted(void *context, curl_off_t t1, curl_off_t n1, curl_off_t t2, curl_off_t n2)
{
    const struct service_client *client = context;
    (void)t1, (void)n1, (void)t2, (void)n2;
    return !client->cleaning_up && interrupted();
}

/* The problem's detail or title where the body is one, else "". Lives as long as PROBLEM. */
static const char *problem_text(const json_t *problem)
{
    const char *detail = json_string_value(json_object_get(problem, "detail"));
    const char *title = json_string_value(json_object_get(problem, "title"));
    return detail ? detail : title ? title : "";
}

/* Calls METHOD PATH, with BODY as JSON unless it is NULL. A status of 300 and more is a failure, but for
 * the status EXPECTED. The reply's body is the caller's to free, also on failure. */
static bool call(struct service_client *client, const char *method, const char *path, const json_t *body,
                 long expected, struct reply *ret_reply)
{
    *ret_reply = (struct reply){.http = {.most = REPLY_MAX, .whole = true}};
    char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
    char *url = NULL;
    if ((body && !text) || asprintf(&url, "%s%s", client->url, path) < 0) {
        free(text);
        set_error(client, "out of memory");
        return false;
    }

    char header[320];
    snprintf(header, sizeof header, "Idempotency-Key: %s", client->key ? client->key : "");
    struct curl_slist with_key = {.data = header, .next = client->headers};
    curl_easy_reset(client->curl); /* keeps the connection */
    http_request_prepare(client->curl, url, client->key ? &with_key : client->headers,
                         client->cleaning_up ? CLEANUP_MS : CALL_MS, &ret_reply->http);
    curl_easy_setopt(client->curl, CURLOPT_CUSTOMREQUEST, method);
    if (text)
        curl_easy_setopt(client->curl, CURLOPT_POSTFIELDS, text);
    curl_easy_setopt(client->curl, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
    curl_easy_setopt(client->curl, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(client->curl, CURLOPT_XFERINFOFUNCTION, stop_when_interrupted);
    curl_easy_setopt(client->curl, CURLOPT_XFERINFODATA, client);
    CURLcode code = curl_easy_perform(client->curl);
    ret_reply->status = http_request_status(client->curl);
    free(text);

    bool ok = code == CURLE_OK && (ret_reply->status < 300 || ret_reply->status == expected);
    if (code != CURLE_OK) {
        set_error(client, "%s %s: %s", method, url, curl_easy_strerror(code));
    } else if (!ok) {
        json_auto_t *problem = json_loads(http_reply_text(&ret_reply->http), 0, NULL);
        set_error(client, "%s %s was answered %ld %s", method, url, ret_reply->status, problem_text(problem));
    }
    free(url);
    return ok;
}

/* A call whose answer is its status alone. */
static bool call_done(struct service_client *client, const char *method, const char *path, const json_t *body)
{
    struct reply reply;
    bool done = call(client, method, path, body, 0, &reply);
    http_reply_free(&reply.http);
    return done;
}

static json_t *call_json(struct service_client *client, const char *method, const char *path,
                         const json_t *body)
{
    struct reply reply;
    json_t *answer = NULL;
    if (call(client, method, path, body, 0, &reply)) {
        json_error_t error;
        answer = json_loadb(http_reply_text(&reply.http), reply.http.length, JSON_REJECT_DUPLICATES, &error);
        if (!answer)
            set_error(client, "%s %s%s: the answer is not JSON: %s", method, client->url, path, error.text);
    }
    http_reply_free(&reply.http);
    return answer;
}

/* ---- the client ---------------------------------------------------------------------------------------- */

struct service_client *service_client_open(const char *url, const char *token)
{
    static bool curl_is_ready;
    if (!curl_is_ready && curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return NULL;
    curl_is_ready = true;

    struct service_client *client = calloc(1, sizeof *client);
    if (!client)
        return NULL;
    client->curl = curl_easy_init();
    client->url = strdup(url);
    struct curl_slist *headers = curl_slist_append(NULL, "Content-Type: application/json");
    if (headers && token && *token) {
        char *line = NULL;
        if (asprintf(&line, "Authorization: Bearer %s", token) < 0)
            line = NULL;
        struct curl_slist *longer = line ? curl_slist_append(headers, line) : NULL;
        free(line);
        if (!longer)
            curl_slist_free_all(headers);
        headers = longer;
    }
    client->headers = headers;
    if (!client->curl || !client->url || !headers) {
        service_client_close(client);
        return NULL;
    }
    size_t length = strlen(client->url);
    while (length > 0 && client->url[length - 1] == '/')
        client->url[--length] = 0;
    return client;
}

void service_client_close(struct service_client *client)
{
    if (!client)
        return;
    if (client->curl)
        curl_easy_cleanup(client->curl);
    curl_slist_free_all(client->headers);
    free(client->url);
    free(client);
}

const char *service_client_url(const struct service_client *client)
{
    return client->url;
}

const char *service_client_error(const struct service_client *client)
{
    return client->error;
}

bool service_client_failed(const struct service_client *client)
{
    if (!interrupted())
        complain("%s", client->error);
    return false;
}

void service_client_begin_cleanup(struct service_client *client)
{
    client->cleaning_up = true;
}

/* ---- its calls ----------------------------------------------------------------------------------------- */

bool service_client_ready(struct service_client *client)
{
    return call_done(client, "GET", "/readyz", NULL);
}

json_t *service_client_strategies(struct service_client *client)
{
    json_auto_t *answer = call_json(client, "GET", "/strategies", NULL);
    json_t *rows = json_object_get(answer, "strategies");
    if (answer && !json_is_array(rows))
        set_error(client, "GET %s/strategies: the answer has no strategies", client->url);
    return json_is_array(rows) ? json_incref(rows) : NULL;
}

/* Where the strategy is that is meant; BUFFER of 64 bytes, returned. */
static const char *strategy_path(int64_t product, char *buffer)
{
    if (product > 0)
        snprintf(buffer, 64, "/strategy?product_id=%" PRId64, product);
    else
        snprintf(buffer, 64, "/strategy");
    return buffer;
}

json_t *service_client_strategy(struct service_client *client, int64_t product)
{
    char path[64];
    return call_json(client, "GET", strategy_path(product, path), NULL);
}

bool service_client_lock_wait(struct service_client *client, int64_t product, int64_t *ret_ms)
{
    json_auto_t *settings = service_client_strategy(client, product);
    const json_t *wait = json_object_get(settings, "lock_wait_ms");
    *ret_ms = json_integer_value(wait);
    bool is_valid = json_is_integer(wait) && *ret_ms >= 0;
    if (settings && !is_valid)
        set_error(client, "GET %s/strategy: the answer has no valid lock_wait_ms", client->url);
    return is_valid;
}

static bool put_strategy(struct service_client *client, int64_t product, const json_t *body)
{
    char path[64];
    return call_done(client, "PUT", strategy_path(product, path), body);
}

bool service_client_set_strategy(struct service_client *client, int64_t product, const json_t *settings)
{
    /* What can be read is more than what can be set, and the service refuses what it does not know. */
    static const char *const MEMBERS[] = {"name", "lock_ttl_ms", "lock_wait_ms", "think_ms", "in_turn"};
    json_auto_t *body = json_object();
    for (size_t i = 0; i < sizeof MEMBERS / sizeof MEMBERS[0]; i++) {
        json_t *value = json_object_get(settings, MEMBERS[i]);
        if (value && json_object_set(body, MEMBERS[i], value) != 0) {
            set_error(client, "out of memory");
            return false;
        }
    }
    return put_strategy(client, product, body);
}

bool service_client_switch(struct service_client *client, int64_t product, const char *strategy,
                           int64_t think_ms, int64_t lock_wait_ms, enum in_turn in_turn)
{
    json_auto_t *body = json_pack("{s:s, s:I, s:o*, s:o*}", "name", strategy, "think_ms",
                                  (json_int_t)think_ms, "lock_wait_ms",
                                  lock_wait_ms >= 0 ? json_integer(lock_wait_ms) : NULL, "in_turn",
                                  in_turn == SAME_IN_TURN ? NULL : json_boolean(in_turn));
    return put_strategy(client, product, body);
}

bool service_client_replace(struct service_client *client, int64_t product, int64_t stock, const char *kind,
                            const char *price)
{
    char path[64];
    snprintf(path, sizeof path, "/products/%" PRId64, product);
    json_auto_t *body = json_pack("{s:s, s:s, s:I, s:s}", "name", "Load test", "price", price, "stock",
                                  (json_int_t)stock, "kind", kind);
    return call_done(client, "PUT", path, body);
}

bool service_client_reset(struct service_client *client, int64_t product, int64_t stock, const char *kind)
{
    char path[64];
    snprintf(path, sizeof path, "/products/%" PRId64 "/reset", product);
    json_auto_t *body = json_pack("{s:I, s:s}", "stock", (json_int_t)stock, "kind", kind);
    for (int try = 0; try < 2; try++) {
        struct reply reply;
        bool done = call(client, "POST", path, body, 404, &reply);
        http_reply_free(&reply.http);
        if (!done || reply.status != 404)
            return done;
        if (!service_client_replace(client, product, stock, kind, "19.90"))
            return false;
    }
    set_error(client, "%s%s: the product does not exist, although the command has just created it",
              client->url, path);
    return false;
}

#define BOOKS_MEMBER(name, is_optional) JSON_MEMBER(#name, struct books, name, is_optional)

static const struct json_member BOOKS_MEMBERS[] = {
    BOOKS_MEMBER(initial, false),  BOOKS_MEMBER(left, false),         BOOKS_MEMBER(sold, false),
    BOOKS_MEMBER(orders, false),   BOOKS_MEMBER(oversold, false),     BOOKS_MEMBER(drift, false),
    BOOKS_MEMBER(negative, false), BOOKS_MEMBER(balanced, false),     BOOKS_MEMBER(mixed, false),
    BOOKS_MEMBER(in_flight, true), BOOKS_MEMBER(amounts_wrong, true),
};
static const struct json_members BOOKS = JSON_MEMBERS(BOOKS_MEMBERS);

const char *books_parse(const json_t *audit, struct books *ret_books)
{
    struct books books = {0};
    const char *missing = members_unpack(&BOOKS, audit, &books);
    if (missing)
        return missing;
    const json_t *witness = json_object_get(audit, "witness");
    json_int_t seen, first, second;
    if (json_is_object(witness) && json_unpack((json_t *)witness, "{s:I, s:[I, I]}", "stock_seen", &seen,
                                               "orders", &first, &second) == 0) {
        books.has_witness = true;
        books.witness_seen = seen;
        books.witness_orders[0] = first;
        books.witness_orders[1] = second;
    }
    *ret_books = books;
    return NULL;
}

bool service_client_audit(struct service_client *client, int64_t product, struct books *ret_books)
{
    char path[64];
    snprintf(path, sizeof path, "/audit?product_id=%" PRId64, product);
    json_auto_t *audit = call_json(client, "GET", path, NULL);
    if (!audit)
        return false;

    const char *missing = books_parse(audit, ret_books);
    if (missing)
        set_error(client, "GET %s%s: the answer has no valid %s", client->url, path, missing);
    return !missing;
}

bool service_client_order(struct service_client *client, int64_t product, int64_t quantity,
                          enum answer *ret_answer)
{
    struct reply reply;
    json_auto_t *body = json_pack("{s:I, s:I}", "product_id", (json_int_t)product, "quantity",
                                  (json_int_t)quantity);
    (void)call(client, "POST", "/orders", body, 0, &reply); /* a refusal is an answer */
    bool answered = reply.status != 0;
    if (answered)
        *ret_answer = answer_of(reply.status, http_reply_text(&reply.http), reply.http.length);
    http_reply_free(&reply.http);
    return answered;
}

bool service_client_order_again(struct service_client *client, const char *strategy, int64_t product,
                                int64_t quantity, const char *key, struct keyed_order *ret_order)
{
    struct reply reply;
    char path[160];
    json_auto_t *body = json_pack("{s:I, s:I}", "product_id", (json_int_t)product, "quantity",
                                  (json_int_t)quantity);
    snprintf(path, sizeof path, "/orders%s%s", strategy ? "?strategy=" : "", strategy ? strategy : "");
    client->key = key;
    (void)call(client, "POST", path, body, 0, &reply); /* a refusal is an answer */
    client->key = NULL;
    json_auto_t *answer = json_loads(http_reply_text(&reply.http), 0, NULL);
    bool good = reply.status >= 200 && reply.status < 300;
    *ret_order = (struct keyed_order){
        .status = reply.status,
        .id = good ? (int64_t)json_integer_value(json_object_get(answer, "id")) : 0,
        .mismatch = strstr(http_reply_text(&reply.http), "/problems/idempotency-mismatch\""),
    };
    http_reply_free(&reply.http);
    return reply.status != 0;
}

char *service_client_metrics(struct service_client *client)
{
    struct reply reply;
    if (call(client, "GET", "/metrics", NULL, 0, &reply) && reply.http.body)
        return reply.http.body;
    http_reply_free(&reply.http);
    return NULL;
}

json_t *service_client_traces(struct service_client *client)
{
    char path[64];
    snprintf(path, sizeof path, "/traces?format=chrome&limit=%d", TRACES_WANTED);
    return call_json(client, "GET", path, NULL);
}

json_t *service_client_recent(struct service_client *client, int64_t product, int limit)
{
    char path[96];
    snprintf(path, sizeof path, "/traces?product_id=%" PRId64 "&limit=%d", product, limit);
    return call_json(client, "GET", path, NULL);
}
