/* Waiting until a key in etcd is deleted: a request whose reply is a stream of events, one JSON object a line, read until
 * the event comes or the waiter has no more time. */
#include "base/clock.h"
#include "lock/etcd/client/client_impl.h"
#include "lock/etcd/client/recording.h"

#include "base/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BROKEN_WATCH_MS = 50 }; /* the pause before one who cannot watch looks again */

enum news { NO_NEWS, MADE, DELETED, CANCELED, BROKEN };

/* Watches KEY from now on, not from an earlier revision: etcd tells those who ask for the past ten times a second only,
 * the others at once. */
static bool begin_watch(struct etcd *etcd, const char *key, unsigned *ret_recorded)
{
    if (!etcd->multi)
        etcd->multi = curl_multi_init();
    if (!etcd->watch)
        etcd->watch = etcd_new_transfer(etcd, &etcd->stream, true);
    AUTO_JSON request = json_pack("{s:{s:s,s:[s]}}", "create_request", "key", key, "filters", "NOPUT");
    char *body = request ? json_dumps(request, JSON_COMPACT) : NULL;
    bool begun = false;
    *ret_recorded = body ? etcd_record_request(etcd, "/v3/watch", request) : 0;
    if (body && etcd->watch && etcd->multi) {
        char url[ETCD_URL_SIZE];
        snprintf(url, sizeof url, "%s/v3/watch", etcd->endpoints[etcd->current]);
        etcd->stream.length = 0;
        curl_easy_setopt(etcd->watch, CURLOPT_URL, url);
        curl_easy_setopt(etcd->watch, CURLOPT_COPYPOSTFIELDS, body);
        curl_easy_setopt(etcd->watch, CURLOPT_CONNECTTIMEOUT_MS, (long)LOCK_COMMAND_MS);
        begun = curl_multi_add_handle(etcd->multi, etcd->watch) == CURLM_OK;
    }
    free(body);
    return begun;
}

static void end_watch(struct etcd *etcd)
{
    curl_multi_remove_handle(etcd->multi, etcd->watch); /* closes the connection in the middle of its reply */
}

static enum news news_in(const json_t *object, int64_t *ret_revision)
{
    const json_t *result = json_object_get(object, "result");
    if (!result || json_is_true(json_object_get(result, "canceled")))
        return CANCELED; /* by etcd, with an error */
    if (json_array_size(json_object_get(result, "events")) > 0)
        return DELETED; /* of a key's changes we have asked for no others */
    if (!json_is_true(json_object_get(result, "created")))
        return NO_NEWS;
    *ret_revision = etcd_revision(result);
    return MADE;
}

/* Reads the next object that has come whole: one a line. */
static enum news read_stream(struct etcd *etcd, int64_t *ret_revision)
{
    struct received *s = &etcd->stream;
    const char *end;
    enum news news = NO_NEWS;
    while (news == NO_NEWS && s->length > 0 && (end = memchr(s->data, '\n', s->length))) {
        size_t line = (size_t)(end - s->data) + 1;
        json_error_t why;
        AUTO_JSON object = json_read(s->data, line, 0, &why);
        news = news_in(object, ret_revision);
        s->length -= line;
        memmove(s->data, s->data + line, s->length);
    }
    return news;
}

/* MADE: the watch tells of what happens after *ret_revision. BROKEN: the connection. */
static enum news listen_until(struct etcd *etcd, int64_t until_us, int64_t *ret_revision)
{
    while (true) {
        int running = 0;
        if (curl_multi_perform(etcd->multi, &running) != CURLM_OK)
            return BROKEN;
        enum news news = read_stream(etcd, ret_revision);
        if (news != NO_NEWS)
            return news;
        if (!running)
            return BROKEN;
        int64_t left_ms = (until_us - monotonic_us() + 999) / 1000;
        if (left_ms <= 0)
            return NO_NEWS;
        curl_multi_poll(etcd->multi, NULL, 0, left_ms < 60000 ? (int)left_ms : 60000, NULL);
    }
}

/* Was the key deleted without the watch's telling, as before it was made? */
static enum lock_status look_back(struct etcd *etcd, struct lock *lock, int64_t deadline_us, const char *key,
                                  bool *ret_absent)
{
    AUTO_JSON reply = NULL;
    enum lock_status status = etcd_call(etcd, lock, deadline_us, "/v3/kv/range",
                                        json_pack("{s:s,s:b}", "key", key, "count_only", 1), &reply);
    *ret_absent = status == LOCK_OK && etcd_number(reply, "count") == 0;
    return status;
}

/* Whom a sleeper's key is asked about by. */
struct sleeper {
    struct etcd *etcd;
    const char *key;
};

static bool is_deleted(void *context)
{
    const struct sleeper *sleeper = context;
    struct lock nobody = {0};
    bool absent;
    return look_back(sleeper->etcd, &nobody, INT64_MAX, sleeper->key, &absent) == LOCK_OK && absent;
}

/* Has the watch ended, and not by us? */
static bool has_ended(enum news news)
{
    return news == DELETED || news == CANCELED || news == BROKEN;
}

/* How the watch ended, for the recorder. */
static const char *ending_of(enum news news)
{
    switch (news) {
    case DELETED: return "deleted";
    case CANCELED: return "ended by etcd";
    case BROKEN: return "no answer: the connection is lost";
    default: return "ended by the client";
    }
}

enum lock_status etcd_await_deletion(struct etcd *etcd, struct lock *lock, int64_t deadline_us,
                                     const char *key, int64_t revision, struct etcd_lease *lease)
{
    unsigned recorded;
    if (!begin_watch(etcd, key, &recorded))
        return lock_fail(lock, LOCK_FAILED, "etcd: out of memory for a watch");
    lock->round_trips++;
    enum lock_status status = LOCK_OK;
    enum news news = NO_NEWS;
    bool is_absent = false;
    int watched =
        etcd->current; /* a request that had to turn to another endpoint says that this one is silent */
    while (status == LOCK_OK && !is_absent && !has_ended(news) && etcd->current == watched) {
        int64_t now = monotonic_us(), due_us = etcd_renewal_due_us(lease), made_at = 0;
        if (now >= deadline_us) {
            status = LOCK_TIMED_OUT;
        } else if (now >= due_us) {
            status = etcd_keep_alive(etcd, lock, deadline_us, lease);
            if (status == LOCK_OK) /* its connection may have gone without a word */
                status = look_back(etcd, lock, deadline_us, key, &is_absent);
        } else {
            news = listen_until(etcd, deadline_us < due_us ? deadline_us : due_us, &made_at);
            if (news == MADE && made_at != revision)
                status = look_back(etcd, lock, deadline_us, key, &is_absent);
            if (news == MADE && status == LOCK_OK && !is_absent &&
                !begin_sleep(lock->observer, is_deleted, &(struct sleeper){etcd, key}))
                status = LOCK_TIMED_OUT;
        }
    }
    end_watch(etcd);
    record_answer(recorded, ending_of(news));
    if (news == DELETED)
        lock->wake_ups++;
    if (news != BROKEN && news != CANCELED)
        return status;
    etcd_turn_to_next(etcd);
    return lock_poll_pause(lock, BROKEN_WATCH_MS, deadline_us) ? LOCK_OK : LOCK_TIMED_OUT;
}
