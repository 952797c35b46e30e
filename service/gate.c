/* Keeps orders and changes of what they stand on apart.
 *
 * One mutex, held for a few instructions. Running orders are counted, all of them and by product (in stripes: two
 * products may share one, which delays a reset, never an order). A change keeps new orders out first and then waits
 * for the running ones, so that a stream of orders cannot put it off for ever. */
#include "service/gate.h"

#include "service/steps.h"

#include <pthread.h>
#include <stdlib.h>

enum { STRIPES = 256 };

struct gate {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int running[STRIPES];
    int closing[STRIPES]; /* resets that wait or run: 1 at most has the stripe, the others wait too */
    bool closed[STRIPES];
    int64_t sale_us[STRIPES];
    int running_common; /* orders under the common settings */
    int switching;      /* changes of these that wait */
    struct settings settings;
    struct own {
        int64_t product_id;
        struct settings settings;
    } own[OWN_SETTINGS_MAX];
    int own_count;
};

static size_t stripe_of(int64_t product_id)
{
    return (uint64_t)product_id % STRIPES;
}

/* Waits for a change; false when DEADLINE has come. */
static bool wait_for_change(struct gate *gate, int64_t deadline_us)
{
    struct timespec until = {.tv_sec = deadline_us / 1000000, .tv_nsec = deadline_us % 1000000 * 1000};
    return pthread_cond_clockwait(&gate->changed, &gate->mutex, CLOCK_MONOTONIC, &until) == 0;
}

struct gate *gate_new(const struct settings *settings)
{
    struct gate *gate = calloc(1, sizeof *gate);
    if (!gate)
        return NULL;
    pthread_mutex_init(&gate->mutex, NULL);
    pthread_cond_init(&gate->changed, NULL);
    gate->settings = *settings;
    return gate;
}

void gate_free(struct gate *gate)
{
    if (!gate)
        return;
    pthread_cond_destroy(&gate->changed);
    pthread_mutex_destroy(&gate->mutex);
    free(gate);
}

/* The product's own settings, or NULL; with the mutex held. They come while no order of the product runs, and stay. */
static const struct own *find_own(const struct gate *gate, int64_t product_id)
{
    for (const struct own *own = gate->own; own < gate->own + gate->own_count; own++)
        if (own->product_id == product_id)
            return own;
    return NULL;
}

static bool is_shut(const struct gate *gate, int64_t product_id)
{
    return gate->closing[stripe_of(product_id)] > 0 || (gate->switching > 0 && !find_own(gate, product_id));
}

static void let_in(struct gate *gate, int64_t product_id, struct settings *ret_settings)
{
    const struct own *own = find_own(gate, product_id);
    gate->running[stripe_of(product_id)]++;
    gate->running_common += !own;
    *ret_settings = own ? own->settings : gate->settings;
}

bool gate_enter(struct gate *gate, int64_t product_id, int64_t deadline_us, struct settings *ret_settings)
{
    bool in_time = true;
    pthread_mutex_lock(&gate->mutex);
    while (is_shut(gate, product_id) && in_time)
        in_time = wait_for_change(gate, deadline_us);
    if (in_time)
        let_in(gate, product_id, ret_settings);
    pthread_mutex_unlock(&gate->mutex);
    return in_time;
}

bool gate_try_enter(struct gate *gate, int64_t product_id, struct settings *ret_settings)
{
    pthread_mutex_lock(&gate->mutex);
    bool open = !is_shut(gate, product_id);
    if (open)
        let_in(gate, product_id, ret_settings);
    pthread_mutex_unlock(&gate->mutex);
    return open;
}

void gate_leave(struct gate *gate, int64_t product_id)
{
    size_t stripe = stripe_of(product_id);
    pthread_mutex_lock(&gate->mutex);
    gate->running[stripe]--;
    gate->running_common -= !find_own(gate, product_id);
    bool awaited = (gate->closing[stripe] > 0 && gate->running[stripe] == 0) ||
                   (gate->switching > 0 && gate->running_common == 0);
    pthread_mutex_unlock(&gate->mutex);
    if (awaited)
        pthread_cond_broadcast(&gate->changed);
}

bool gate_close(struct gate *gate, int64_t product_id, int64_t deadline_us)
{
    size_t stripe = stripe_of(product_id);
    bool in_time = true;
    pthread_mutex_lock(&gate->mutex);
    gate->closing[stripe]++;
    while ((gate->closed[stripe] || gate->running[stripe] > 0) && in_time)
        in_time = wait_for_change(gate, deadline_us);
    if (in_time)
        gate->closed[stripe] = true;
    else
        gate->closing[stripe]--;
    pthread_mutex_unlock(&gate->mutex);
    if (!in_time)
        pthread_cond_broadcast(&gate->changed);
    return in_time;
}

void gate_open(struct gate *gate, int64_t product_id)
{
    size_t stripe = stripe_of(product_id);
    pthread_mutex_lock(&gate->mutex);
    gate->closed[stripe] = false;
    gate->closing[stripe]--;
    pthread_mutex_unlock(&gate->mutex);
    pthread_cond_broadcast(&gate->changed);
}

void gate_begin_sale(struct gate *gate, int64_t product_id)
{
    pthread_mutex_lock(&gate->mutex);
    gate->sale_us[stripe_of(product_id)] = monotonic_us();
    pthread_mutex_unlock(&gate->mutex);
}

int64_t gate_sale_us(struct gate *gate, int64_t product_id)
{
    pthread_mutex_lock(&gate->mutex);
    int64_t sale_us = gate->sale_us[stripe_of(product_id)];
    pthread_mutex_unlock(&gate->mutex);
    return sale_us;
}

struct settings gate_settings(struct gate *gate)
{
    pthread_mutex_lock(&gate->mutex);
    struct settings settings = gate->settings;
    pthread_mutex_unlock(&gate->mutex);
    return settings;
}

struct settings gate_settings_of(struct gate *gate, int64_t product_id)
{
    pthread_mutex_lock(&gate->mutex);
    const struct own *own = find_own(gate, product_id);
    struct settings settings = own ? own->settings : gate->settings;
    pthread_mutex_unlock(&gate->mutex);
    return settings;
}

static void merge(struct settings *settings, const struct settings *changes)
{
    if (changes->strategy)
        settings->strategy = changes->strategy;
    if (changes->lock_ttl_ms >= 0)
        settings->lock_ttl_ms = changes->lock_ttl_ms;
    if (changes->lock_wait_ms >= 0)
        settings->lock_wait_ms = changes->lock_wait_ms;
    if (changes->think_ms >= 0)
        settings->think_ms = changes->think_ms;
    if (changes->product_limit >= 0)
        settings->product_limit = changes->product_limit;
}

bool gate_switch(struct gate *gate, const struct settings *changes, int64_t deadline_us,
                 struct settings *ret_settings)
{
    bool in_time = true;
    pthread_mutex_lock(&gate->mutex);
    gate->switching++;
    while (gate->running_common > 0 && in_time)
        in_time = wait_for_change(gate, deadline_us);
    if (in_time) {
        merge(&gate->settings, changes);
        *ret_settings = gate->settings;
    }
    gate->switching--;
    pthread_mutex_unlock(&gate->mutex);
    pthread_cond_broadcast(&gate->changed);
    return in_time;
}

bool gate_set_own(struct gate *gate, int64_t product_id, const struct settings *changes,
                  struct settings *ret_settings)
{
    pthread_mutex_lock(&gate->mutex);
    struct own *own = (struct own *)find_own(gate, product_id);
    if (!own && gate->own_count < OWN_SETTINGS_MAX) {
        own = &gate->own[gate->own_count++];
        *own = (struct own){product_id, gate->settings};
    }
    if (own) {
        merge(&own->settings, changes);
        *ret_settings = own->settings;
    }
    pthread_mutex_unlock(&gate->mutex);
    return own != NULL;
}

bool gate_has_own(struct gate *gate, int64_t product_id)
{
    pthread_mutex_lock(&gate->mutex);
    bool has = find_own(gate, product_id) != NULL;
    pthread_mutex_unlock(&gate->mutex);
    return has;
}
