/* Measures etcd with the three calls of an uncontended lock, without the lock: grant a lease, put and look in one
 * transaction, revoke the lease. Each thread keeps one connection open, sends the same JSON, and never retries. */
#include "loadtest/bench/references.h"

#include "loadtest/client/http_request.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALL_MS 30000
#define TEXT_SIZE 4096
#define KEY_SIZE 96
#define BASE64_SIZE (KEY_SIZE / 3 * 4 + 8)

struct caller {
    const char *endpoint; /* http://HOST:PORT, without a slash behind it */
    CURL *curl;
    struct curl_slist *headers;
    char queue[KEY_SIZE - 20];
    struct http_reply reply;
};

static bool fail(char *ret_reason, const char *words)
{
    snprintf(ret_reason, REASON_SIZE, "etcd: %.200s", words);
    return false;
}

static bool call(struct caller *c, const char *path, const char *body, char *ret_reason)
{
    char url[256];
    snprintf(url, sizeof url, "%s%s", c->endpoint, path);
    http_reply_begin(&c->reply);
    curl_easy_setopt(c->curl, CURLOPT_URL, url);
    curl_easy_setopt(c->curl, CURLOPT_POSTFIELDS, body);
    CURLcode code = curl_easy_perform(c->curl);
    if (code != CURLE_OK)
        return fail(ret_reason, curl_easy_strerror(code));
    return http_request_status(c->curl) == 200 ||
           fail(ret_reason, c->reply.length ? c->reply.body : "not HTTP 200");
}

static void base64(const char *text, char ret_base64[static BASE64_SIZE])
{
    static const char DIGITS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t length = strlen(text);
    char *to = ret_base64;
    for (size_t i = 0; i < length; i += 3) {
        unsigned bits = 0;
        for (size_t j = i; j < i + 3; j++)
            bits = bits << 8 | (j < length ? (unsigned char)text[j] : 0);
        for (int shift = 18; shift >= 0; shift -= 6)
            *to++ = DIGITS[bits >> shift & 63];
    }
    memset(to - (3 - length % 3) % 3, '=', (3 - length % 3) % 3);
    *to = 0;
}

static bool caller_turn(void *own, int64_t end_us, char *ret_reason)
{
    struct caller *c = own;
    char key[KEY_SIZE], key64[BASE64_SIZE], queue64[BASE64_SIZE], end64[BASE64_SIZE], body[TEXT_SIZE];
    long long lease;
    (void)end_us; /* each call has its own time limit */
    if (!call(c, "/v3/lease/grant", "{\"TTL\":10}", ret_reason))
        return false;
    const char *id = strstr(http_reply_text(&c->reply), "\"ID\":\"");
    if (!id || sscanf(id, "\"ID\":\"%lld\"", &lease) != 1)
        return fail(ret_reason, "etcd returned a lease without an ID");
    snprintf(key, sizeof key, "%s/%llx", c->queue, (unsigned long long)lease);
    base64(key, key64);
    snprintf(key, sizeof key, "%s/", c->queue);
    base64(key, queue64);
    snprintf(key, sizeof key, "%s0", c->queue);
    base64(key, end64);
    snprintf(
        body, sizeof body,
        "{\"compare\":[{\"target\":\"CREATE\",\"result\":\"EQUAL\",\"key\":\"%s\",\"create_revision\":0}],"
        "\"success\":[{\"request_put\":{\"key\":\"%s\",\"lease\":%lld}},"
        "{\"request_range\":{\"key\":\"%s\",\"range_end\":\"%s\",\"sort_target\":\"CREATE\","
        "\"sort_order\":\"ASCEND\",\"limit\":1,\"keys_only\":true}}],"
        "\"failure\":[{\"request_range\":{\"key\":\"%s\",\"keys_only\":true}}]}",
        key64, key64, lease, queue64, end64, key64);
    if (!call(c, "/v3/kv/txn", body, ret_reason))
        return false;
    snprintf(body, sizeof body, "{\"ID\":%lld}", lease);
    return call(c, "/v3/lease/revoke", body, ret_reason);
}

static bool caller_begin(void *own, void *shared, size_t member, char *ret_reason)
{
    struct caller *c = own;
    c->endpoint = shared;
    snprintf(c->queue, sizeof c->queue, "oversell/locks/bench:bare:%zu", member);
    c->curl = curl_easy_init();
    c->headers = curl_slist_append(NULL, "Grpc-Metadata-hasleader: true");
    if (!c->curl || !c->headers)
        return fail(ret_reason, "out of memory");
    c->reply = (struct http_reply){.most = TEXT_SIZE - 1, .whole = true};
    http_request_prepare(c->curl, c->endpoint, c->headers, CALL_MS, &c->reply);
    curl_easy_setopt(c->curl, CURLOPT_POST, 1L);
    return caller_turn(c, 0, ret_reason);
}

static void caller_end(void *own)
{
    struct caller *c = own;
    curl_easy_cleanup(c->curl);
    curl_slist_free_all(c->headers);
    http_reply_free(&c->reply);
}

static void initialize(void)
{
    (void)curl_global_init(CURL_GLOBAL_DEFAULT); /* if it fails, so does curl_easy_init */
}

bool etcd_bare_cycles(const struct lock_config *config, size_t threads, int64_t ms, struct progress *progress,
                      double *ret_per_s, char *ret_reason)
{
    static const struct thread_work WORK = {sizeof(struct caller), caller_begin, caller_turn, caller_end};
    static pthread_once_t initialized = PTHREAD_ONCE_INIT;
    pthread_once(&initialized, initialize);
    char *endpoint = strndup(config->etcd_endpoints, strcspn(config->etcd_endpoints, ","));
    if (!endpoint)
        return fail(ret_reason, "out of memory");
    bool well = threads_run(&WORK, endpoint, threads, ms, progress, ret_per_s, ret_reason);
    free(endpoint);
    return well;
}
