/* The clients of a fault run: threads that place orders, retry while the outcome is unknown, and write the history. */
#include "loadtest/faults/testbed/clients.h"

#include "base/clock.h"
#include "base/prng.h"
#include "loadtest/cli/complain.h"
#include "loadtest/client/answer.h"
#include "loadtest/client/http_request.h"

#include <inttypes.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONNECT_MS 2000L
#define BODY_MAX 2047 /* the beginning of an answer is enough */
#define AGAIN_MS 30   /* before a retry, and after a refusal */
#define STACK_BYTES (256 << 10)

struct fault_clients {
    struct fault_workload workload;
    atomic_bool ending;
    atomic_size_t running;
    size_t started;
    struct client {
        struct fault_clients *all;
        const struct fault_client *is;
        uint64_t random;
        pthread_t thread;
        CURL *curl;
        struct curl_slist *type;
        struct http_reply reply;
    } clients[];
};

/* ---- one request --------------------------------------------------------------------------------------- */

enum reply {
    REPLY_GOT,
    REPLY_NONE,     /* the request may have been read */
    REPLY_NOT_SENT, /* no connection */
    REPLY_TOO_LATE,
};

static enum reply send_order(struct client *client, int instance, size_t number, long *ret_status)
{
    const struct fault_workload *workload = &client->all->workload;
    char url[256], body[96], header[96], key[64];
    snprintf(url, sizeof url, "%s/orders?strategy=%s", workload->urls[instance], client->is->name);
    snprintf(body, sizeof body, "{\"product_id\":%" PRId64 ",\"quantity\":%" PRId64 "}", client->is->product,
             workload->history->quantity);
    snprintf(header, sizeof header, "Idempotency-Key: %s", fault_history_key(workload->history, number, key));
    struct curl_slist own = {.data = header, .next = client->type};

    curl_easy_reset(client->curl); /* keeps the connection */
    http_request_prepare(client->curl, url, &own, (long)workload->reply_ms, &client->reply);
    curl_easy_setopt(client->curl, CURLOPT_POSTFIELDS, body);
    curl_easy_setopt(client->curl, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
    CURLcode code = curl_easy_perform(client->curl);
    *ret_status = http_request_status(client->curl);
    if (code == CURLE_OK)
        return REPLY_GOT;
    if (code == CURLE_COULDNT_CONNECT && client->reply.sent == 0)
        return REPLY_NOT_SENT;
    return code == CURLE_OPERATION_TIMEDOUT && client->reply.sent > 0 ? REPLY_TOO_LATE : REPLY_NONE;
}

/* ---- one intent ---------------------------------------------------------------------------------------- */

static int64_t id_in(const char *body)
{
    const char *id = strstr(body, "\"id\":");
    return id ? strtoll(id + 5, NULL, 10) : 0;
}

static void note_wrong(struct client *client, struct intent *intent, long status)
{
    char text[256];
    snprintf(text, sizeof text, "%s was answered %ld %.150s", client->is->name, status,
             http_reply_text(&client->reply));
    fault_history_oddity(client->all->workload.history, text);
    intent->told = TOLD_WRONG;
}

/* Writes what a reply says into INTENT. True: no retry is needed. */
static bool read_reply(struct client *client, long status, struct intent *intent)
{
    switch (answer_of(status, http_reply_text(&client->reply), client->reply.length)) {
    case ANSWER_CREATED:
    case ANSWER_ACCEPTED:
        intent->told = TOLD_CREATED;
        intent->order_id = id_in(http_reply_text(&client->reply));
        return true;
    case ANSWER_SOLD_OUT: intent->told = TOLD_SOLD_OUT; return true;
    case ANSWER_LOCK_BUSY:
    case ANSWER_CONFLICT:
    case ANSWER_OVERLOADED:
    case ANSWER_LOCK_LOST:
    case ANSWER_UNAVAILABLE:
        intent->told = TOLD_REFUSED;
        return !intent->doubtful; /* this request sold nothing, but an earlier one may have */
    case ANSWER_UNKNOWN: intent->doubtful = true; return false;
    default: break;
    }
    if (strstr(http_reply_text(&client->reply), "idempotency-in-progress")) {
        intent->doubtful = true;
        return false;
    }
    note_wrong(client, intent, status);
    return true;
}

static void rest(struct client *client, int64_t ms)
{
    if (ms > 0)
        (void)poll(NULL, 0, (int)random_up_to(&client->random, ms));
}

/* Until the next moment at which all clients that join begin an order. */
static void rest_until_all_begin(int64_t pause_ms)
{
    int64_t every_us = pause_ms * 1000 / 2;
    if (every_us > 0)
        (void)poll(NULL, 0, (int)((every_us - monotonic_us() % every_us + 999) / 1000));
}

static void place(struct client *client, size_t number)
{
    const struct fault_workload *workload = &client->all->workload;
    struct intent intent = {.strategy = client->is->strategy};
    int instance = client->is->instance;
    int64_t end_us = monotonic_us() + workload->patience_ms * 1000;
    bool settled = false;
    while (!settled) {
        long status = 0;
        enum reply reply = send_order(client, instance, number, &status);
        intent.hung |= reply == REPLY_TOO_LATE;
        intent.doubtful |= reply == REPLY_NONE || reply == REPLY_TOO_LATE || client->reply.sent > 1;
        settled = reply == REPLY_GOT && read_reply(client, status, &intent);
        if (settled || monotonic_us() > end_us)
            break;
        /* Nothing was sold so far, so a client that is asked to end need not retry. */
        if (!intent.doubtful && atomic_load(&client->all->ending))
            break;
        if (reply != REPLY_GOT && !client->is->fixed)
            instance = (instance + 1) % FAULT_INSTANCES;
        rest(client, AGAIN_MS);
    }
    if (!settled)
        intent.told = intent.doubtful ? TOLD_NOTHING : TOLD_REFUSED;
    if (settled && intent.told == TOLD_SOLD_OUT && intent.doubtful)
        intent.told = TOLD_NOTHING; /* an earlier request may still be on its way */
    intent.ended_us = monotonic_us();
    fault_history_told(workload->history, number, &intent);
    if (intent.told == TOLD_REFUSED)
        rest(client, AGAIN_MS);
}

/* ---- the threads --------------------------------------------------------------------------------------- */

static void *run_client(void *context)
{
    struct client *client = context;
    struct fault_clients *all = client->all;
    size_t number;
    do {
        if (!fault_history_intend(all->workload.history, client->is->strategy, client->is->instance, &number))
            break;
        place(client, number);
        if (client->is->joins)
            rest_until_all_begin(all->workload.pause_ms);
        else if (!all->workload.once)
            rest(client, all->workload.pause_ms);
    } while (!all->workload.once && !atomic_load(&all->ending));
    atomic_fetch_sub(&all->running, 1);
    return NULL;
}

static bool start_client(struct fault_clients *all, size_t i, const pthread_attr_t *attributes)
{
    struct client *client = &all->clients[i];
    client->all = all;
    client->is = &all->workload.clients[i];
    client->random = random_from(all->workload.seed + i);
    client->reply.most = BODY_MAX;
    client->curl = curl_easy_init();
    client->type = curl_slist_append(NULL, "Content-Type: application/json");
    all->started++;
    atomic_fetch_add(&all->running, 1);
    if (client->curl && client->type && pthread_create(&client->thread, attributes, run_client, client) == 0)
        return true;
    atomic_fetch_sub(&all->running, 1);
    curl_easy_cleanup(client->curl);
    curl_slist_free_all(client->type);
    all->started--;
    return false;
}

struct fault_clients *fault_clients_start(const struct fault_workload *workload)
{
    struct fault_clients *all = calloc(1, sizeof *all + workload->count * sizeof all->clients[0]);
    if (!all) {
        complain("out of memory");
        return NULL;
    }
    all->workload = *workload;
    pthread_attr_t attributes;
    bool ok = pthread_attr_init(&attributes) == 0;
    if (ok && pthread_attr_setstacksize(&attributes, STACK_BYTES) != 0)
        ok = false;
    for (size_t i = 0; ok && i < workload->count; i++)
        ok = start_client(all, i, &attributes);
    (void)pthread_attr_destroy(&attributes);
    if (ok)
        return all;
    complain("cannot start %zu clients", workload->count);
    fault_clients_end(all);
    return NULL;
}

size_t fault_clients_running(const struct fault_clients *clients)
{
    return atomic_load(&clients->running);
}

void fault_clients_end(struct fault_clients *clients)
{
    if (!clients)
        return;
    atomic_store(&clients->ending, true);
    for (size_t i = 0; i < clients->started; i++) {
        struct client *client = &clients->clients[i];
        (void)pthread_join(client->thread, NULL);
        curl_easy_cleanup(client->curl);
        curl_slist_free_all(client->type);
        http_reply_free(&client->reply);
    }
    free(clients);
}
