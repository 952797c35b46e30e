/* Records the requests that a thread sends to PostgreSQL and to lock servers, with the answers, so that a page can show them.
 *
 * Only the explorer sets a recorder, for the threads of its orders. Elsewhere a request costs one thread-local load and a branch.
 * Everything is bounded. Callers never pass passwords. */
#ifndef OVERSELL_BASE_RECORDER_H
#define OVERSELL_BASE_RECORDER_H

#include <jansson.h>
#include <pthread.h>
#include <stddef.h>

enum {
    RECORDED_MAX = 256,        /* requests that are kept; those after them are only counted */
    RECORDED_TEXT_MAX = 1000,  /* bytes of a request's text that are kept, … */
    RECORDED_VALUE_MAX = 80,   /* … of each of its values … */
    RECORDED_VALUES_MAX = 16,  /* (and the number of values) … */
    RECORDED_ANSWER_MAX = 200, /* … and of its answer */
};

/* What one thread has sent. The thread writes it; another may read it meanwhile. */
struct recorder {
    pthread_mutex_t mutex;
    json_t *requests[RECORDED_MAX];
    const void *connections[RECORDED_MAX];
    unsigned count;    /* of all requests, also of those that are not kept */
    unsigned answered; /* the number, from 1 on, of the last one that has an answer */
};

/* The recorder of this thread; NULL: its requests are not recorded. */
extern _Thread_local struct recorder *thread_recorder;

/* An empty recorder; NULL if memory is out. */
struct recorder *recorder_new(void);
/* No thread may use it any longer. RECORDER may be NULL. */
void recorder_free(struct recorder *recorder);
/* Forgets all requests. */
void recorder_clear(struct recorder *recorder);
/* How many requests the thread has sent since the last clear, and up to which of them it has answers: *RET_ANSWERED of them. */
unsigned recorder_count(struct recorder *recorder, unsigned *ret_answered);
/* Request number I, from 0 on, as {"to", "text", "values", "answer"}: a new reference. *RET_CONNECTION: by which connection it was
 * sent. NULL if it is not kept. */
json_t *recorder_request(struct recorder *recorder, unsigned i, const void **ret_connection);

unsigned recorder_add(struct recorder *recorder, const char *to, const void *connection, const char *text,
                      const char *const *values, int value_count);
void recorder_answer(struct recorder *recorder, unsigned request, const char *answer);

/* Records a request that this thread is about to send to the server TO by CONNECTION, which is only compared. VALUE_COUNT values;
 * one may be NULL, and so may VALUES if there are none. Returns the request's number for record_answer, from 1 on; 0: it is not
 * recorded. */
static inline unsigned record_request(const char *to, const void *connection, const char *text,
                                      const char *const *values, int value_count)
{
    return thread_recorder ? recorder_add(thread_recorder, to, connection, text, values, value_count) : 0;
}

/* Records the answer to a request of this thread. REQUEST may be 0. */
static inline void record_answer(unsigned request, const char *answer)
{
    if (request && thread_recorder)
        recorder_answer(thread_recorder, request, answer);
}

/* From now on this thread's requests are not recorded. Returns its recorder, to be set again. */
static inline struct recorder *record_nothing(void)
{
    struct recorder *recorder = thread_recorder;
    thread_recorder = NULL;
    return recorder;
}

/* Copies TEXT for people: white space becomes one space, control characters and bytes that are not UTF-8 become '?', and a text
 * of more than SIZE - 1 bytes ends with "…" in place of its rest, never in the middle of a character. SIZE is at least 4. */
void recorder_shorten(const char *text, char *ret_text, size_t size);

#endif
