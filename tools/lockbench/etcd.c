/* Measures etcd with the three calls of an uncontended lock, without the lock: grant a lease, put and look in one
 * transaction, revoke the lease. Each thread keeps one connection open, sends the same JSON, and never retries. */
#include "tools/lockbench/lockbench.h"

#include "tools/lockbench/threads.h"

#include <curl/curl.h>
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
    char reply[TEXT_SIZE];
    size_t length;
};

static size_t receive(char *data, size_t one, size_t length, void *own)
{
    struct caller *c = own;
    (void)one; /* libcurl promises that it is 1 */
    if (length >= sizeof c->reply - c->length)
        return 0;
    memcpy(c->reply + c->length, data, length);
    c->length += length;
    c->reply[c->length] = 0;
    return length;
}

static void call(struct caller *c, const char *path, const char *body)
{
    char url[256];
    long status = 0;
    snprintf(url, sizeof url, "%s%s", c->endpoint, path);
    c->length = 0;
    curl_easy_setopt(c->curl, CURLOPT_URL, url);
    curl_easy_setopt(c->curl, CURLOPT_POSTFIELDS, body);
    CURLcode code = curl_easy_perform(c->curl);
    if (code != CURLE_OK)
        die("etcd: %s", curl_easy_strerror(code));
    curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, &status);
    if (status != 200)
        die("etcd: %.200s", c->length ? c->reply : "not HTTP 200");
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

static void caller_turn(void *own, int64_t end_us)
{
    struct caller *c = own;
    char key[KEY_SIZE], key64[BASE64_SIZE], queue64[BASE64_SIZE], end64[BASE64_SIZE], body[TEXT_SIZE];
    long long lease;
    (void)end_us; /* each call has its own time limit */
    call(c, "/v3/lease/grant", "{\"TTL\":10}");
    const char *id = strstr(c->reply, "\"ID\":\"");
    if (!id || sscanf(id, "\"ID\":\"%lld\"", &lease) != 1)
        die("etcd returned a lease without an ID");
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
    call(c, "/v3/kv/txn", body);
    snprintf(body, sizeof body, "{\"ID\":%lld}", lease);
    call(c, "/v3/lease/revoke", body);
}

static void caller_begin(void *own, void *shared, size_t member)
{
    struct caller *c = own;
    c->endpoint = shared;
    snprintf(c->queue, sizeof c->queue, "oversell/locks/bench:bare:%zu", member);
    c->curl = curl_easy_init();
    c->headers = curl_slist_append(NULL, "Grpc-Metadata-hasleader: true");
    if (!c->curl || !c->headers)
        die("out of memory");
    curl_easy_setopt(c->curl, CURLOPT_HTTPHEADER, c->headers);
    curl_easy_setopt(c->curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(c->curl, CURLOPT_PROXY, "");
    curl_easy_setopt(c->curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(c->curl, CURLOPT_TIMEOUT_MS, (long)CALL_MS);
    curl_easy_setopt(c->curl, CURLOPT_WRITEFUNCTION, receive);
    curl_easy_setopt(c->curl, CURLOPT_WRITEDATA, c);
    curl_easy_setopt(c->curl, CURLOPT_POST, 1L);
    caller_turn(c, 0);
}

static void caller_end(void *own)
{
    struct caller *c = own;
    curl_easy_cleanup(c->curl);
    curl_slist_free_all(c->headers);
}

double etcd_bare_cycles(size_t threads, int64_t ms)
{
    static const struct thread_work WORK = {sizeof(struct caller), caller_begin, caller_turn, caller_end};
    char endpoint[200];
    snprintf(endpoint, sizeof endpoint, "%.*s", (int)strcspn(lock_config.etcd_endpoints, ","),
             lock_config.etcd_endpoints);
    (void)curl_global_init(CURL_GLOBAL_DEFAULT); /* if it fails, so does curl_easy_init */
    return threads_run(&WORK, endpoint, threads, ms);
}
