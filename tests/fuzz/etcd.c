/* An etcd that may not be one, as the locks read its JSON.
 *
 * The first byte chooses the lock, and whether it may wait; the rest is what is said to one request after the other, with
 * the byte 0xff between: three digits of HTTP's status and a body, or nothing for a connection that breaks. A watch is
 * told one piece at each look. */
#include "base/clock.h"
#include "tests/fuzz/fuzz.h"

#include "lock/etcd/client/client.h"
#include "lock/registry.h"

#include <ctype.h>
#include <curl/curl.h>
#include <stdarg.h>

enum { WAIT_US = 2000 };

static struct fuzz_input replies;

/* ---- in the place of libcurl ------------------------------------------------------------------------------- */

struct transfer {
    curl_write_callback write;
    void *into;
    long status;
};

#undef curl_easy_setopt
#undef curl_easy_getinfo

CURL *curl_easy_init(void)
{
    return calloc(1, sizeof(struct transfer));
}

void curl_easy_cleanup(CURL *curl)
{
    free(curl);
}

CURLcode curl_easy_setopt(CURL *curl, CURLoption option, ...)
{
    struct transfer *transfer = curl;
    va_list arguments;
    va_start(arguments, option);
    if (option == CURLOPT_WRITEFUNCTION)
        transfer->write = va_arg(arguments, curl_write_callback);
    else if (option == CURLOPT_WRITEDATA)
        transfer->into = va_arg(arguments, void *);
    va_end(arguments);
    return CURLE_OK;
}

CURLcode curl_easy_getinfo(CURL *curl, CURLINFO info, ...)
{
    va_list arguments;
    va_start(arguments, info);
    *va_arg(arguments, long *) = info == CURLINFO_RESPONSE_CODE ? ((struct transfer *)curl)->status : 1;
    va_end(arguments);
    return CURLE_OK;
}

/* Hands over the next piece. */
static CURLcode hear(struct transfer *transfer, bool has_status)
{
    size_t size;
    const uint8_t *piece = fuzz_piece(&replies, 0xff, &size);
    if (size == 0)
        return CURLE_COULDNT_CONNECT;
    for (transfer->status = 0; has_status && size > 0 && isdigit(*piece) && transfer->status < 100;
         piece++, size--)
        transfer->status = transfer->status * 10 + (*piece - '0');
    char *copy = malloc(size + !size); /* as libcurl's: not ended by a NUL */
    MUST(copy);
    memcpy(copy, piece, size);
    size_t taken = size ? transfer->write(copy, 1, size, transfer->into) : 0;
    free(copy);
    return taken == size ? CURLE_OK : CURLE_WRITE_ERROR;
}

CURLcode curl_easy_perform(CURL *curl)
{
    return hear(curl, true);
}

static struct transfer *watched;

CURLM *curl_multi_init(void)
{
    return (CURLM *)&watched;
}

CURLMcode curl_multi_cleanup(CURLM *multi)
{
    (void)multi;
    return CURLM_OK;
}

CURLMcode curl_multi_add_handle(CURLM *multi, CURL *curl)
{
    (void)multi;
    watched = curl;
    return CURLM_OK;
}

CURLMcode curl_multi_remove_handle(CURLM *multi, CURL *curl)
{
    (void)multi;
    (void)curl;
    return CURLM_OK;
}

CURLMcode curl_multi_perform(CURLM *multi_handle, int *running_handles)
{
    (void)multi_handle;
    *running_handles = hear(watched, false) == CURLE_OK;
    return CURLM_OK;
}

CURLMcode curl_multi_poll(CURLM *multi_handle, struct curl_waitfd extra_fds[], unsigned extra_nfds,
                          int timeout_ms, int *ret)
{
    (void)multi_handle;
    (void)extra_fds;
    (void)extra_nfds;
    (void)timeout_ms;
    if (ret)
        *ret = 0;
    return CURLM_OK;
}

/* ---- who asks ---------------------------------------------------------------------------------------------- */

__attribute__((constructor)) static void set_up(void)
{
    lock_configure(&(struct lock_config){.database_url = "",
                                         .redis_url = "",
                                         .redlock_urls = "",
                                         .zookeeper_connect = "",
                                         .etcd_endpoints = "http://127.0.0.1:1",
                                         .prefix = "fuzz"});
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    replies = (struct fuzz_input){data, size};
    uint8_t who = fuzz_byte(&replies);
    const struct lock_driver *driver = who & 1 ? &etcd_cas : &etcd_mutex;
    int64_t deadline_us = who & 2 ? monotonic_us() + WAIT_US : 0;
    struct lock *lock = NULL;
    struct lock_grant grant;
    MUST(lock_open(driver, &lock) == LOCK_OK);
    lock->lease_ms = 2000;
    enum lock_status status = driver->acquire(lock, "product:1", deadline_us, &grant);
    MUST(status != LOCK_LOST && memchr(lock->error, '\0', sizeof lock->error));
    if (status == LOCK_OK) {
        MUST(strcmp(grant.key, "product:1") == 0 && memchr(grant.token, '\0', sizeof grant.token));
        MUST(grant.fence >= 0 && (!driver->properties.fenced || grant.fence > 0));
        (void)driver->still_held(lock, &grant);
        (void)driver->renew(lock, &grant);
        (void)driver->release(lock, &grant);
    }
    lock_close(lock);
    return 0;
}
