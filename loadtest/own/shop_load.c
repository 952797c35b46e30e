/* Sends many requests to a user's service at once, and counts the answers. A thread for each connection. */
#include "loadtest/own/shop_load.h"

#include "base/clock.h"
#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* What the threads share. */
struct sale {
    const struct shop_load *load;
    _Atomic int64_t taken; /* requests that some thread has sent or will send */
    _Atomic bool failed;
};

struct sender {
    pthread_t thread;
    struct sale *sale;
    struct shop_counts counts;
};

static bool is_sold_out(const struct description *description, long status)
{
    size_t i;
    json_t *value;
    json_array_foreach(description->sold_out, i, value) {
        if (json_integer_value(value) == status)
            return true;
    }
    return false;
}

static void count(struct shop_counts *counts, const struct description *description,
                  const struct shop_answer *answer)
{
    bool odd = false;
    if (answer->status >= 100 && answer->status < SHOP_STATUSES) {
        counts->statuses[answer->status]++;
        hdr_add(&counts->times, answer->us);
    }
    if (answer->status == 0)
        counts->unanswered++;
    else if (answer->status >= 200 && answer->status < 300)
        counts->sold++;
    else if (is_sold_out(description, answer->status))
        counts->sold_out++;
    else
        counts->other++;
    odd = answer->status == 0 || (answer->status >= 300 && !is_sold_out(description, answer->status));
    if (odd && !counts->odd.text[0] && !counts->odd.status)
        counts->odd = *answer;
}

static void *send_requests(void *context)
{
    struct sender *sender = context;
    struct sale *sale = sender->sale;
    const struct shop_load *load = sale->load;
    struct shop_connection *connection = shop_connection_open();
    if (!connection)
        atomic_store(&sale->failed, true);
    while (!atomic_load(&sale->failed) && !interrupted()) {
        int64_t number = atomic_fetch_add(&sale->taken, 1);
        if (number >= load->requests)
            break;
        struct placeholder values[SHOP_PLACEHOLDERS];
        struct shop_answer answer;
        char text[24];
        shop_service_values(load->service, load->first + number, text, values);
        if (shop_request_send(connection, load->service->description->request, values, load->timeout_ms,
                              &answer))
            count(&sender->counts, load->service->description, &answer);
        else
            atomic_store(&sale->failed, true);
    }
    shop_connection_close(connection);
    return NULL;
}

static void add(struct shop_counts *sum, const struct shop_counts *counts)
{
    for (size_t i = 0; i < SHOP_STATUSES; i++)
        sum->statuses[i] += counts->statuses[i];
    sum->sold += counts->sold;
    sum->sold_out += counts->sold_out;
    sum->other += counts->other;
    sum->unanswered += counts->unanswered;
    hdr_merge(&sum->times, &counts->times);
    if (!sum->odd.text[0] && !sum->odd.status)
        sum->odd = counts->odd;
}

bool shop_load_run(const struct shop_load *load, struct shop_counts *ret_counts)
{
    struct sale sale = {.load = load};
    struct sender *senders = calloc((size_t)load->connections, sizeof *senders);
    int64_t started = 0, begun_us = monotonic_us();
    bool well = senders != NULL;
    memset(ret_counts, 0, sizeof *ret_counts);
    for (; well && started < load->connections; started++) {
        senders[started].sale = &sale;
        if (pthread_create(&senders[started].thread, NULL, send_requests, &senders[started]) != 0)
            break;
    }
    if (started < load->connections)
        atomic_store(&sale.failed, true);
    for (int64_t i = 0; i < started; i++) {
        pthread_join(senders[i].thread, NULL);
        add(ret_counts, &senders[i].counts);
    }
    ret_counts->seconds = (double)(monotonic_us() - begun_us) / 1e6;
    free(senders);
    if (atomic_load(&sale.failed))
        complain("cannot send requests over %" PRId64 " connections: out of memory or threads",
                 load->connections);
    return !atomic_load(&sale.failed) && !interrupted();
}
