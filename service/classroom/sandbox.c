/* Sandboxes: places for learners, each with a product and a token. An unused place goes to another learner after a while. */
#include "service/classroom/sandbox.h"

#include "base/clock.h"
#include "base/secret.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TOKEN_LENGTH = SECRET_SIZE - 1 };

struct sandboxes {
    pthread_mutex_t mutex; /* guards all below */
    int64_t idle_us;
    int64_t most_of_address;
    char code[CLASS_CODE_SIZE]; /* "": there is no class */
    struct place {
        char token[SECRET_SIZE];   /* "": nobody's */
        char evicted[SECRET_SIZE]; /* the last token that the teacher ended, or "" */
        char address[SANDBOX_ADDRESS_SIZE];
        bool is_teachers; /* not counted for its address */
        bool taken;       /* between sandbox_take and what follows it */
        int64_t product_id, used_us, orders;
        unsigned calls[2]; /* steps and searches that are counted now */
        int exercise_count;
        uint64_t exercises[SANDBOX_EXERCISES];
    } places[SANDBOXES_MAX];
};

struct sandboxes *sandboxes_new(int64_t idle_ms, int64_t most_of_address)
{
    struct sandboxes *sandboxes = calloc(1, sizeof *sandboxes);
    if (!sandboxes)
        return NULL;
    pthread_mutex_init(&sandboxes->mutex, NULL);
    sandboxes->idle_us = idle_ms * 1000;
    sandboxes->most_of_address = most_of_address;
    return sandboxes;
}

void sandboxes_free(struct sandboxes *sandboxes)
{
    if (!sandboxes)
        return;
    pthread_mutex_destroy(&sandboxes->mutex);
    free(sandboxes);
}

void sandboxes_set_address_limit(struct sandboxes *sandboxes, int64_t most)
{
    pthread_mutex_lock(&sandboxes->mutex);
    sandboxes->most_of_address = most;
    pthread_mutex_unlock(&sandboxes->mutex);
}

int64_t sandboxes_address_limit(struct sandboxes *sandboxes)
{
    pthread_mutex_lock(&sandboxes->mutex);
    int64_t most = sandboxes->most_of_address;
    pthread_mutex_unlock(&sandboxes->mutex);
    return most;
}

void sandboxes_set_code(struct sandboxes *sandboxes, const char code[static CLASS_CODE_SIZE])
{
    pthread_mutex_lock(&sandboxes->mutex);
    memcpy(sandboxes->code, code, CLASS_CODE_SIZE);
    pthread_mutex_unlock(&sandboxes->mutex);
}

void sandboxes_new_code(struct sandboxes *sandboxes, char ret_code[static CLASS_CODE_SIZE])
{
    enum { HALF = (CLASS_CODE_SIZE - 2) / 2 };
    char half[2][HALF + 1];
    make_secret(half[0], HALF);
    make_secret(half[1], HALF);
    snprintf(ret_code, CLASS_CODE_SIZE, "%s-%s", half[0], half[1]);
    sandboxes_set_code(sandboxes, ret_code);
}

void sandboxes_code(struct sandboxes *sandboxes, char ret_code[static CLASS_CODE_SIZE])
{
    pthread_mutex_lock(&sandboxes->mutex);
    memcpy(ret_code, sandboxes->code, CLASS_CODE_SIZE);
    pthread_mutex_unlock(&sandboxes->mutex);
}

bool sandboxes_is_code(struct sandboxes *sandboxes, const char *token)
{
    pthread_mutex_lock(&sandboxes->mutex);
    bool is_code = sandboxes->code[0] && same_secret(token, sandboxes->code);
    pthread_mutex_unlock(&sandboxes->mutex);
    return is_code;
}

/* The place with this product, or NULL; it may be free by now. With the mutex held, as the next five. */
static struct place *place_of(struct sandboxes *sandboxes, int64_t product_id)
{
    for (struct place *place = sandboxes->places; place < sandboxes->places + SANDBOXES_MAX; place++)
        if (place->product_id == product_id)
            return place;
    return NULL;
}

static bool is_idle(const struct sandboxes *sandboxes, const struct place *place, int64_t now_us)
{
    return !place->token[0] || now_us - place->used_us > sandboxes->idle_us;
}

static bool is_free(const struct sandboxes *sandboxes, const struct place *place, int64_t now_us)
{
    return !place->taken && is_idle(sandboxes, place, now_us);
}

static bool is_of_address(const struct place *place, const char *address)
{
    return (place->taken || place->token[0]) && !place->is_teachers && strcmp(place->address, address) == 0;
}

/* The place that nobody has used for longest, never at best, if more than SPARED places are free; otherwise -1. ADDRESS: of
 * its idle ones alone; NULL: of all. */
static int find_free(const struct sandboxes *sandboxes, int spared, const char *address, int64_t now_us)
{
    int found = -1, free_places = 0;
    for (int i = 0; i < SANDBOXES_MAX; i++) {
        const struct place *place = &sandboxes->places[i];
        if (!is_free(sandboxes, place, now_us))
            continue;
        free_places++;
        if ((!address || is_of_address(place, address)) &&
            (found < 0 || place->used_us < sandboxes->places[found].used_us))
            found = i;
    }
    return free_places > spared ? found : -1;
}

static int count_of_address(const struct sandboxes *sandboxes, const char *address)
{
    int count = 0;
    for (int i = 0; i < SANDBOXES_MAX; i++)
        count += is_of_address(&sandboxes->places[i], address);
    return count;
}

int sandbox_take(struct sandboxes *sandboxes, const struct sandbox_caller *caller, int64_t *ret_product_id)
{
    pthread_mutex_lock(&sandboxes->mutex);
    int64_t most = caller->is_teacher ? 0 : sandboxes->most_of_address;
    int64_t now_us = monotonic_us();
    /* An address with its limit of tokens, idle ones among them, gives one of those away: its owner could use it again. */
    bool is_full = most > 0 && count_of_address(sandboxes, caller->address) >= most;
    int found = find_free(sandboxes, caller->is_teacher ? 0 : SANDBOXES_RESERVED,
                          is_full ? caller->address : NULL, now_us);
    if (found < 0 && is_full)
        found = SANDBOX_ADDRESS_FULL;
    if (found >= 0) {
        struct place *place = &sandboxes->places[found];
        place->taken = true;
        place->is_teachers = caller->is_teacher;
        place->token[0] = '\0';
        memcpy(place->address, caller->address, sizeof place->address);
        *ret_product_id = place->product_id;
    }
    pthread_mutex_unlock(&sandboxes->mutex);
    return found;
}

void sandbox_give(struct sandboxes *sandboxes, int place, int64_t product_id, char *ret_token)
{
    make_secret(ret_token, TOKEN_LENGTH);
    pthread_mutex_lock(&sandboxes->mutex);
    struct place *given = &sandboxes->places[place];
    given->product_id = product_id;
    given->used_us = monotonic_us();
    given->orders = 0;
    given->exercise_count = 0;
    given->taken = false;
    memcpy(given->token, ret_token, SECRET_SIZE);
    pthread_mutex_unlock(&sandboxes->mutex);
}

void sandbox_drop(struct sandboxes *sandboxes, int place, int64_t product_id)
{
    pthread_mutex_lock(&sandboxes->mutex);
    sandboxes->places[place].taken = false;
    sandboxes->places[place].product_id = product_id;
    pthread_mutex_unlock(&sandboxes->mutex);
}

int64_t sandbox_owned(struct sandboxes *sandboxes, const char *token)
{
    int64_t product_id = 0;
    if (!sandboxes || strlen(token) != TOKEN_LENGTH)
        return 0;
    pthread_mutex_lock(&sandboxes->mutex);
    int64_t now_us = monotonic_us();
    for (struct place *place = sandboxes->places; place < sandboxes->places + SANDBOXES_MAX; place++)
        if (place->token[0] && same_secret(token, place->token) &&
            (place->is_teachers || !is_idle(sandboxes, place, now_us) ||
             find_free(sandboxes, SANDBOXES_RESERVED, NULL, now_us) >= 0)) {
            product_id = place->product_id;
            place->used_us = now_us;
        }
    pthread_mutex_unlock(&sandboxes->mutex);
    return product_id;
}

int sandbox_list(struct sandboxes *sandboxes, struct sandbox_info ret_list[static SANDBOXES_MAX])
{
    int count = 0;
    pthread_mutex_lock(&sandboxes->mutex);
    int64_t now_us = monotonic_us(); /* a place may have been used during the wait for the mutex */
    for (const struct place *place = sandboxes->places; place < sandboxes->places + SANDBOXES_MAX; place++) {
        if (!place->token[0])
            continue;
        struct sandbox_info *info = &ret_list[count++];
        *info = (struct sandbox_info){.number = (int)(place - sandboxes->places) + 1,
                                      .product_id = place->product_id,
                                      .idle_ms = (now_us - place->used_us) / 1000,
                                      .orders = place->orders,
                                      .is_expired = is_idle(sandboxes, place, now_us),
                                      .is_teachers = place->is_teachers};
        memcpy(info->address, place->address, sizeof info->address);
    }
    pthread_mutex_unlock(&sandboxes->mutex);
    return count;
}

/* With the mutex held. */
static void evict(struct place *place)
{
    memcpy(place->evicted, place->token, SECRET_SIZE);
    place->token[0] = '\0';
}

bool sandbox_evict(struct sandboxes *sandboxes, int64_t product_id)
{
    pthread_mutex_lock(&sandboxes->mutex);
    struct place *place = place_of(sandboxes, product_id);
    bool found = place && place->token[0];
    if (found)
        evict(place);
    pthread_mutex_unlock(&sandboxes->mutex);
    return found;
}

int sandbox_evict_address(struct sandboxes *sandboxes, const char *address,
                          int64_t ret_product_ids[static SANDBOXES_MAX])
{
    int count = 0;
    pthread_mutex_lock(&sandboxes->mutex);
    for (struct place *place = sandboxes->places; place < sandboxes->places + SANDBOXES_MAX; place++)
        if (place->token[0] && is_of_address(place, address)) {
            evict(place);
            ret_product_ids[count++] = place->product_id;
        }
    pthread_mutex_unlock(&sandboxes->mutex);
    return count;
}

bool sandbox_was_evicted(struct sandboxes *sandboxes, const char *token)
{
    bool found = false;
    if (!sandboxes || strlen(token) != TOKEN_LENGTH)
        return false;
    pthread_mutex_lock(&sandboxes->mutex);
    for (struct place *place = sandboxes->places; place < sandboxes->places + SANDBOXES_MAX; place++)
        found |= place->evicted[0] && same_secret(token, place->evicted);
    pthread_mutex_unlock(&sandboxes->mutex);
    return found;
}

void sandbox_count_order(struct sandboxes *sandboxes, int64_t product_id)
{
    pthread_mutex_lock(&sandboxes->mutex);
    for (struct place *place = sandboxes->places; place < sandboxes->places + SANDBOXES_MAX; place++)
        place->orders += place->token[0] && place->product_id == product_id;
    pthread_mutex_unlock(&sandboxes->mutex);
}

void sandbox_note_exercise(struct sandboxes *sandboxes, int64_t product_id, uint64_t exercise)
{
    pthread_mutex_lock(&sandboxes->mutex);
    struct place *place = place_of(sandboxes, product_id);
    bool is_new = place && place->exercise_count < SANDBOX_EXERCISES;
    for (int i = 0; is_new && i < place->exercise_count; i++)
        is_new = place->exercises[i] != exercise;
    if (is_new)
        place->exercises[place->exercise_count++] = exercise;
    pthread_mutex_unlock(&sandboxes->mutex);
}

int sandbox_exercises(struct sandboxes *sandboxes, int64_t product_id)
{
    pthread_mutex_lock(&sandboxes->mutex);
    const struct place *place = place_of(sandboxes, product_id);
    int count = place ? place->exercise_count : 0;
    pthread_mutex_unlock(&sandboxes->mutex);
    return count;
}

bool sandbox_begin_call(struct sandboxes *sandboxes, int64_t product_id, bool is_search, unsigned most,
                        unsigned *ret_earlier)
{
    pthread_mutex_lock(&sandboxes->mutex);
    struct place *place = place_of(sandboxes, product_id);
    *ret_earlier = place ? place->calls[is_search] : most;
    bool room = *ret_earlier < most;
    if (room)
        place->calls[is_search]++;
    pthread_mutex_unlock(&sandboxes->mutex);
    return room;
}

void sandbox_end_call(struct sandboxes *sandboxes, int64_t product_id, bool is_search)
{
    pthread_mutex_lock(&sandboxes->mutex);
    struct place *place = place_of(sandboxes, product_id);
    if (place && place->calls[is_search] > 0)
        place->calls[is_search]--;
    pthread_mutex_unlock(&sandboxes->mutex);
}

int sandbox_count(struct sandboxes *sandboxes)
{
    int count = 0;
    pthread_mutex_lock(&sandboxes->mutex);
    int64_t now_us = monotonic_us(); /* a place may have been used during the wait for the mutex */
    for (int i = 0; i < SANDBOXES_MAX; i++)
        count += !is_idle(sandboxes, &sandboxes->places[i], now_us);
    pthread_mutex_unlock(&sandboxes->mutex);
    return count;
}
