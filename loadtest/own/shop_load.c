/* Sends many orders at once to a user's service: each connection sends its next request when the last one was answered. */
#include "loadtest/own/shop_load.h"

#include "base/clock.h"
#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WAIT_MS = 50, WATCH_US = 200000, END_US = 1000000 };

struct buyer {
    struct shop_exchange exchange; /* first, so that libcurl's private pointer is the buyer's as well */
    size_t instance;
    int64_t began_us;
};

struct run {
    const struct shop_load *load;
    struct shop_answers *answers;
    CURLM *multi;
    struct buyer *buyers;
    int64_t sent, ended;
    int64_t silent; /* requests in a row that were not answered */
};

/* ---- requests ------------------------------------------------------------------------------------------ */

static bool send_next(struct run *run, struct buyer *buyer)
{
    const struct shop_load *load = run->load;
    if (run->sent == load->requests)
        return true;
    struct shop_values values = shop_values_of(load->service, buyer->instance);
    values.stock = load->stock;
    values.request = load->first + run->sent++;
    buyer->began_us = monotonic_us();
    if (shop_exchange_prepare(&buyer->exchange, &load->description->request, &values,
                              load->description->timeout_ms) &&
        curl_multi_add_handle(run->multi, buyer->exchange.easy) == CURLM_OK)
        return true;
    complain("out of memory");
    return false;
}

static void count_status(struct shop_answers *answers, long status)
{
    size_t i = 0;
    while (i < answers->status_count && answers->statuses[i].status != status)
        i++;
    if (i == answers->status_count && i < SHOP_STATUS_KINDS) {
        answers->status_count++;
        answers->statuses[i].status = i == SHOP_STATUS_KINDS - 1 ? 0 : status;
    }
    answers->statuses[i < SHOP_STATUS_KINDS ? i : SHOP_STATUS_KINDS - 1].count++;
}

static void keep_first(char *ret_first, size_t size, const char *text)
{
    if (!ret_first[0])
        snprintf(ret_first, size, "%s", text);
}

void shop_answers_add(struct shop_answers *answers, const struct shop_answer *answer)
{
    count_status(answers, answer->status);
    switch (answer->meaning) {
    case SHOP_SOLD:
        answers->sold++;
        keep_first(answers->doubt, sizeof answers->doubt, answer->hint);
        return;
    case SHOP_REFUSED: answers->sold_out++; return;
    case SHOP_ACCEPTED: answers->accepted++; return;
    case SHOP_UNCLEAR: break;
    }
    answers->failed++;
    keep_first(answers->first_failure, sizeof answers->first_failure,
               *answer->text ? answer->text : "an empty answer");
    keep_first(answers->hint, sizeof answers->hint, answer->hint);
}

static void count_end(struct run *run, const struct buyer *buyer, CURLcode code)
{
    struct shop_answers *answers = run->answers;
    struct shop_answer answer;
    run->ended++;
    run->silent = code == CURLE_OK ? 0 : run->silent + 1;
    if (code != CURLE_OK) {
        answers->unanswered++;
        keep_first(answers->first_failure, sizeof answers->first_failure, curl_easy_strerror(code));
        return;
    }
    hdr_add(&answers->latency, monotonic_us() - buyer->began_us);
    shop_exchange_answer(&buyer->exchange, run->load->description, code, &answer);
    shop_answers_add(answers, &answer);
}

static bool collect(struct run *run)
{
    int left;
    for (CURLMsg *message; (message = curl_multi_info_read(run->multi, &left));) {
        struct buyer *buyer;
        CURLcode code = message->data.result; /* gone once the handle is removed */
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&buyer);
        curl_multi_remove_handle(run->multi, message->easy_handle);
        count_end(run, buyer, code);
        if (!send_next(run, buyer))
            return false;
    }
    return true;
}

/* ---- the run ------------------------------------------------------------------------------------------- */

static bool answers_still(struct run *run)
{
    const struct shop_load *load = run->load;
    if (run->silent < 2 * (int64_t)load->connections)
        return true;
    /* A program that has closed its connections may need a moment to end. */
    bool runs = shop_service_runs(load->service);
    const int64_t until_us = monotonic_us() + END_US;
    while (runs && monotonic_us() < until_us && sleep_unless_interrupted(WAIT_MS))
        runs = shop_service_runs(load->service);
    if (runs)
        shop_complain(load->description, "request",
                      "was not answered %" PRId64 " times in a row, each within %" PRId64
                      " ms (timeout_ms): %s. Find out why the service hangs, or use fewer --connections",
                      run->silent, load->description->timeout_ms, run->answers->first_failure);
    return false;
}

static bool run_to_end(struct run *run, void (*progress)(void *context, int64_t ended), void *context)
{
    int64_t watched_us = monotonic_us();
    while (run->ended < run->load->requests) {
        int running;
        if (interrupted())
            return false;
        CURLMcode code = curl_multi_perform(run->multi, &running);
        if (code == CURLM_OK)
            code = curl_multi_poll(run->multi, NULL, 0, WAIT_MS, NULL);
        if (code != CURLM_OK) {
            complain("libcurl: %s", curl_multi_strerror(code));
            return false;
        }
        if (!collect(run) || !answers_still(run))
            return false;
        if (monotonic_us() - watched_us > WATCH_US) {
            if (!shop_service_runs(run->load->service))
                return false;
            progress(context, run->ended);
            watched_us = monotonic_us();
        }
    }
    return true;
}

static int by_status(const void *a, const void *b)
{
    const long *first = a, *second = b; /* the status is the first member of both */
    return (*first > *second) - (*first < *second);
}

bool shop_load_run(const struct shop_load *load, struct shop_answers *ret_answers,
                   void (*progress)(void *context, int64_t ended), void *context)
{
    struct run run = {.load = load, .answers = ret_answers, .multi = curl_multi_init()};
    run.buyers = calloc(load->connections, sizeof *run.buyers);
    memset(ret_answers, 0, sizeof *ret_answers);
    int64_t began_us = monotonic_us();
    bool ok = run.multi && run.buyers;
    if (!ok)
        complain("out of memory");
    else
        curl_multi_setopt(run.multi, CURLMOPT_MAXCONNECTS, (long)load->connections);
    for (size_t i = 0; ok && i < load->connections; i++) {
        run.buyers[i].instance = i % load->service->count;
        ok = send_next(&run, &run.buyers[i]);
    }
    ok = ok && run_to_end(&run, progress, context);
    ret_answers->seconds = (double)(monotonic_us() - began_us) / 1e6;
    qsort(ret_answers->statuses, ret_answers->status_count, sizeof ret_answers->statuses[0], by_status);
    for (size_t i = 0; run.buyers && i < load->connections; i++) {
        if (run.buyers[i].exchange.easy)
            curl_multi_remove_handle(run.multi, run.buyers[i].exchange.easy); /* where it is there */
        shop_exchange_close(&run.buyers[i].exchange);
    }
    curl_multi_cleanup(run.multi);
    free(run.buyers);
    return ok;
}
