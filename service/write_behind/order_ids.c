/* Order ids in stock, in a ring under a mutex. */
#include "service/write_behind/order_ids.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { DRAWN = ORDER_IDS_MAX / 4 };

struct order_ids {
    pthread_mutex_t mutex;
    size_t first, count;
    char shop[SHOP_NAME_SIZE];
    int64_t ring[ORDER_IDS_MAX];
};

struct order_ids *order_ids_new(void)
{
    struct order_ids *ids = calloc(1, sizeof *ids);
    if (ids)
        pthread_mutex_init(&ids->mutex, NULL);
    return ids;
}

void order_ids_free(struct order_ids *ids)
{
    if (!ids)
        return;
    pthread_mutex_destroy(&ids->mutex);
    free(ids);
}

bool order_ids_take(struct order_ids *ids, int64_t *ret_ids, size_t count,
                    char ret_shop[static SHOP_NAME_SIZE])
{
    pthread_mutex_lock(&ids->mutex);
    bool enough = ids->count >= count;
    memcpy(ret_shop, ids->shop, sizeof ids->shop);
    for (size_t i = 0; enough && i < count; i++) {
        ret_ids[i] = ids->ring[ids->first];
        ids->first = (ids->first + 1) % ORDER_IDS_MAX;
        ids->count--;
    }
    pthread_mutex_unlock(&ids->mutex);
    return enough;
}

void order_ids_return(struct order_ids *ids, const char *shop, int64_t id)
{
    pthread_mutex_lock(&ids->mutex);
    if (ids->count < ORDER_IDS_MAX && strcmp(ids->shop, shop) == 0) {
        ids->first = (ids->first + ORDER_IDS_MAX - 1) % ORDER_IDS_MAX;
        ids->ring[ids->first] = id;
        ids->count++;
    }
    pthread_mutex_unlock(&ids->mutex);
}

bool order_ids_run_low(struct order_ids *ids)
{
    pthread_mutex_lock(&ids->mutex);
    bool low = ids->count <= ORDER_IDS_MAX / 2;
    pthread_mutex_unlock(&ids->mutex);
    return low;
}

enum db_status order_ids_draw(struct order_ids *ids, struct db *db)
{
    char shop[SHOP_NAME_SIZE];
    int64_t *drawn = calloc(DRAWN, sizeof *drawn);
    if (!drawn)
        return DB_ERROR;
    enum db_status status = orders_draw_ids(db, drawn, DRAWN, shop);
    pthread_mutex_lock(&ids->mutex);
    if (status == DB_OK && strcmp(ids->shop, shop) != 0) {
        memcpy(ids->shop, shop, sizeof shop);
        ids->count = 0; /* the others are of a database that is no more */
    }
    for (size_t i = 0; status == DB_OK && i < DRAWN && ids->count < ORDER_IDS_MAX; i++)
        ids->ring[(ids->first + ids->count++) % ORDER_IDS_MAX] = drawn[i];
    pthread_mutex_unlock(&ids->mutex);
    free(drawn);
    return status;
}
