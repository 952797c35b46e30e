/* Sandboxes: places for learners, each with a product and a token. A place that is left alone goes to somebody else. */
#include "service/sandbox.h"

#include "service/steps.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum { TOKEN_LENGTH = SECRET_SIZE - 1 };

struct sandboxes {
    pthread_mutex_t mutex;
    int64_t idle_us;
    struct place {
        char token[SECRET_SIZE]; /* "": nobody's */
        bool taken;              /* between sandbox_take and what follows it */
        int64_t product_id, used_us;
    } places[SANDBOXES_MAX];
};

struct sandboxes *sandboxes_new(int64_t idle_ms)
{
    struct sandboxes *sandboxes = calloc(1, sizeof *sandboxes);
    if (!sandboxes)
        return NULL;
    pthread_mutex_init(&sandboxes->mutex, NULL);
    sandboxes->idle_us = idle_ms * 1000;
    return sandboxes;
}

void sandboxes_free(struct sandboxes *sandboxes)
{
    if (!sandboxes)
        return;
    pthread_mutex_destroy(&sandboxes->mutex);
    free(sandboxes);
}

int sandbox_take(struct sandboxes *sandboxes, int64_t *ret_product_id)
{
    int found = -1;
    int64_t now_us = monotonic_us();
    pthread_mutex_lock(&sandboxes->mutex);
    /* One that nobody has had, else the one that was left alone for longest. */
    for (int i = 0; i < SANDBOXES_MAX; i++) {
        const struct place *place = &sandboxes->places[i];
        bool free = !place->token[0] || now_us - place->used_us > sandboxes->idle_us;
        if (!place->taken && free && (found < 0 || place->used_us < sandboxes->places[found].used_us))
            found = i;
    }
    if (found >= 0) {
        sandboxes->places[found].taken = true;
        sandboxes->places[found].token[0] = '\0';
        *ret_product_id = sandboxes->places[found].product_id;
    }
    pthread_mutex_unlock(&sandboxes->mutex);
    return found;
}

void sandbox_give(struct sandboxes *sandboxes, int place, int64_t product_id, char *ret_token)
{
    make_secret(ret_token, TOKEN_LENGTH);
    pthread_mutex_lock(&sandboxes->mutex);
    struct place *given = &sandboxes->places[place];
    *given = (struct place){.product_id = product_id, .used_us = monotonic_us()};
    memcpy(given->token, ret_token, SECRET_SIZE);
    pthread_mutex_unlock(&sandboxes->mutex);
}

void sandbox_drop(struct sandboxes *sandboxes, int place)
{
    pthread_mutex_lock(&sandboxes->mutex);
    sandboxes->places[place].taken = false;
    pthread_mutex_unlock(&sandboxes->mutex);
}

int64_t sandbox_owned(struct sandboxes *sandboxes, const char *token)
{
    int64_t product_id = 0;
    if (!sandboxes || strlen(token) != TOKEN_LENGTH)
        return 0;
    pthread_mutex_lock(&sandboxes->mutex);
    for (struct place *place = sandboxes->places; place < sandboxes->places + SANDBOXES_MAX; place++)
        if (place->token[0] && same_secret(token, place->token)) {
            product_id = place->product_id;
            place->used_us = monotonic_us();
        }
    pthread_mutex_unlock(&sandboxes->mutex);
    return product_id;
}

int sandbox_count(struct sandboxes *sandboxes)
{
    int count = 0;
    int64_t now_us = monotonic_us();
    pthread_mutex_lock(&sandboxes->mutex);
    for (int i = 0; i < SANDBOXES_MAX; i++)
        count += sandboxes->places[i].token[0] && now_us - sandboxes->places[i].used_us <= sandboxes->idle_us;
    pthread_mutex_unlock(&sandboxes->mutex);
    return count;
}

void make_secret(char *ret_secret, size_t length)
{
    static const char LETTERS[] = "abcdefghjkmnpqrstuvwxyz23456789"; /* none that looks like another */
    enum {
        COUNT = sizeof LETTERS - 1,
        EVEN = 256 / COUNT * COUNT
    }; /* bytes from there on would favour some */
    for (size_t i = 0; i < length;) {
        unsigned char byte;
        if (getrandom(&byte, 1, 0) != 1)
            abort(); /* a secret that is none is worse than no service */
        if (byte < EVEN)
            ret_secret[i++] = LETTERS[byte % COUNT];
    }
    ret_secret[length] = '\0';
}

bool same_secret(const char *given, const char *secret)
{
    size_t given_length = strlen(given), length = strlen(secret);
    unsigned char difference = given_length != length;
    for (size_t i = 0; i < given_length; i++)
        difference |= (unsigned char)(given[i] ^ secret[i % (length + 1)]);
    return difference == 0;
}
