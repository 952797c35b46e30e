/* Parses JSON correctly even if memory runs out while it parses. A string or number that is too long for jansson's buffer, and for which that cannot
 * grow, loses a character there (2.14, lex_save): it is then a wrong one, or the end of it is not found. So the buffer
 * always grows, if need be into a reserve, and what was read then is thrown away. */
#include "base/json.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* The buffer has a power of two bytes, and so have others that cannot be told from it: a string of 29 characters, what holds
 * it, the table of an array. All that come after memory ran out lie side by side in the reserve, until the text ends. Since
 * whatever else is asked for is refused then, and with it every new array, object and number, what takes most is an array
 * of nulls, whose tables double: less than 32 bytes for each, which has five in the text. */
enum { LEAST = 32, TIMES = 8, SHORT_TEXT = 1 << 16 };

/* Guards for_short. A thread that has run out of memory keeps it until the end of its text. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static _Alignas(max_align_t) unsigned char for_short[TIMES * SHORT_TEXT];

/* Of the text that the thread reads. */
static _Thread_local bool reads, ran_out;
static _Thread_local struct {
    unsigned char *begin, *next, *end;
} reserve;

static void *get(size_t size)
{
    void *memory = ran_out ? NULL : malloc(size);
    if (memory || !reads)
        return memory;
    if (!reserve.begin) {
        pthread_mutex_lock(&mutex);
        reserve.begin = reserve.next = for_short;
        reserve.end = for_short + sizeof for_short;
    }
    ran_out = true;
    bool may_be_buffer = size >= LEAST && (size & (size - 1)) == 0;
    if (!may_be_buffer || size > (size_t)(reserve.end - reserve.next))
        return NULL;
    memory = reserve.next;
    reserve.next += size;
    return memory;
}

static void give_back(void *memory)
{
    uintptr_t at = (uintptr_t)memory;
    if (at < (uintptr_t)reserve.begin || at >= (uintptr_t)reserve.end)
        free(memory);
}

__attribute__((constructor)) static void lend(void)
{
    json_set_alloc_funcs(get, give_back);
}

static json_t *out_of_memory(json_error_t *ret_error)
{
    *ret_error = (json_error_t){.text = "out of memory", .line = -1, .column = -1};
    ret_error->text[JSON_ERROR_TEXT_LENGTH - 1] = json_error_out_of_memory; /* where json_error_code looks */
    return NULL;
}

json_t *json_read(const char *text, size_t size, size_t flags, json_error_t *ret_error)
{
    unsigned char *own = NULL; /* a reserve for a long text, which is hardly ever touched */
    if (size > SHORT_TEXT) {
        own = malloc(size * TIMES);
        if (!own)
            return out_of_memory(ret_error);
        reserve.begin = reserve.next = own;
        reserve.end = own + size * TIMES;
    }
    reads = true;
    json_t *json = json_loadb(text, size, flags, ret_error);
    reads = false;
    bool whole = !ran_out;
    ran_out = false;
    if (!whole) {
        json_decref(json);
        json = out_of_memory(ret_error);
        if (!own)
            pthread_mutex_unlock(&mutex);
    }
    reserve.begin = reserve.next = reserve.end = NULL;
    free(own);
    return json;
}
