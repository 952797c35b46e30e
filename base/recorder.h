/* Records the requests that a thread sends to PostgreSQL and to lock servers, with the answers, so that a page can show them.
 *
 * Only the explorer sets a recorder, for the threads of its orders. In every other thread a request costs one thread-local load and a
 * branch. A recorder limits the number and the length of the texts that it keeps. Callers never pass passwords. */
#ifndef OVERSELL_BASE_RECORDER_H
#define OVERSELL_BASE_RECORDER_H

#include <jansson.h>
#include <pthread.h>
#include <stddef.h>

enum {
    RECORDED_MAX = 256,        /* requests that a recorder keeps; it only counts the requests after them */
    RECORDED_TEXT_MAX = 1000,  /* bytes of a request's text */
    RECORDED_VALUE_MAX = 80,   /* bytes of each value of a request */
    RECORDED_VALUES_MAX = 16,  /* values of a request */
    RECORDED_ANSWER_MAX = 200, /* bytes of the answer */
};

/* The requests of one thread. That thread adds to it; other threads may read it at the same time. */
struct recorder {
    pthread_mutex_t mutex;
    json_t *requests[RECORDED_MAX];
    const void *connections[RECORDED_MAX];
    unsigned count;    /* of all requests, including those that the recorder does not keep */
    unsigned answered; /* the number, from 1 on, of the last request that has an answer */
};

/* The recorder of this thread; NULL: its requests are not recorded. */
extern _Thread_local struct recorder *thread_recorder;

/* Makes an empty recorder, which the caller frees. NULL: out of memory. */
struct recorder *recorder_new(void);
/* Frees a recorder that no thread uses. RECORDER may be NULL. */
void recorder_free(struct recorder *recorder);
/* Removes all requests. Any thread. */
void recorder_clear(struct recorder *recorder);
/* Returns the number of requests since the last clear. *RET_ANSWERED: the number of the last request that has an answer, from 1 on; 0:
 * none has. Any thread. */
unsigned recorder_count(struct recorder *recorder, unsigned *ret_answered);
/* Returns request number I, from 0 on, as {"to", "text", "values", "answer"}: a new reference. *RET_CONNECTION: the connection that sent
 * it. NULL: there is no such request, the recorder was full, or out of memory. Any thread. */
json_t *recorder_request(struct recorder *recorder, unsigned i, const void **ret_connection);

unsigned recorder_add(struct recorder *recorder, const char *to, const void *connection, const char *text,
                      const char *const *values, int value_count);
void recorder_answer(struct recorder *recorder, unsigned request, const char *answer);

/* Records a request that this thread is about to send to the server TO. CONNECTION is compared, never used. VALUES has VALUE_COUNT
 * elements, each of which may be NULL; VALUES may be NULL if there are none. Returns the request's number for record_answer, from 1 on;
 * 0: this thread records nothing. */
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

/* Stops recording in this thread. Returns its recorder; to go on, the caller sets thread_recorder to it. */
static inline struct recorder *record_nothing(void)
{
    struct recorder *recorder = thread_recorder;
    thread_recorder = NULL;
    return recorder;
}

/* Copies TEXT to RET_TEXT (SIZE bytes, at least 4) in a form that people can read. A sequence of white space becomes one space. A
 * control character (text_is_control) becomes '?', and so does a byte that is not UTF-8. A text of more than SIZE - 1 bytes is cut
 * between two characters and ends with "…". Any thread. */
void recorder_shorten(const char *text, char *ret_text, size_t size);

#endif
