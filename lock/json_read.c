/* Reading JSON where memory may be out. A string or number that is too long for jansson's buffer, and for which that cannot
 * grow, loses a character there (2.14, lex_save): it is then a wrong one, or the end of it is not found. So the buffer
 * always grows, if need be into a reserve, and what was read then is thrown away. */
#include "lock/json_read.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* The buffer has powers of two bytes; a reserve of so many is enough for a text half as long. */
enum { LEAST = 32, RESERVE = 1 << 17 };

/* Of the reserve: who has run out of memory has it to the end. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
/* Two, since a buffer that grows is copied from the one to the other. */
static _Alignas(max_align_t) unsigned char reserve[2][RESERVE];
static unsigned turn;
static _Thread_local bool reads, ran_out;

static void *get(size_t size)
{
    void *memory = malloc(size);
    if (memory || !reads)
        return memory;
    if (!ran_out)
        pthread_mutex_lock(&mutex);
    ran_out = true;
    bool for_buffer = size >= LEAST && size <= RESERVE && (size & (size - 1)) == 0;
    return for_buffer ? reserve[++turn % 2] : NULL;
}

static void give_back(void *memory)
{
    uintptr_t at = (uintptr_t)memory, begin = (uintptr_t)reserve;
    if (at < begin || at >= begin + sizeof reserve)
        free(memory);
}

__attribute__((constructor)) static void lend(void)
{
    json_set_alloc_funcs(get, give_back);
}

json_t *json_read(const char *text, size_t size, size_t flags, json_error_t *ret_error)
{
    reads = true;
    ran_out = false;
    json_t *json = json_loadb(text, size, flags, ret_error);
    reads = false;
    if (!ran_out)
        return json;
    json_decref(json);
    pthread_mutex_unlock(&mutex);
    *ret_error = (json_error_t){.text = "out of memory", .line = -1, .column = -1};
    ret_error->text[JSON_ERROR_TEXT_LENGTH - 1] = json_error_out_of_memory; /* where json_error_code looks */
    return NULL;
}
