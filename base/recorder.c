/* Keeps the requests of a thread as JSON, within bounds. */
#include "base/recorder.h"

#include "base/text.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

_Thread_local struct recorder *thread_recorder;

/* ---- texts ----------------------------------------------------------------------------------------------------- */

static bool is_space(char character)
{
    return character == ' ' || character == '\t' || character == '\n' || character == '\r';
}

void recorder_shorten(const char *text, char *ret_text, size_t size)
{
    static const char ELLIPSIS[] = "…";
    size_t used = 0, fits = 0; /* FITS: where an ellipsis may stand */
    while (*text) {
        size_t length;
        uint32_t point = text_code_point(text, &length);
        bool is_plain = length > 0 && !text_is_control(point);
        const char *character = is_space(*text) ? " " : is_plain ? text : "?";
        size_t kept = is_plain ? length : 1;
        if (used + kept > size - 1) {
            memcpy(ret_text + fits, ELLIPSIS, sizeof ELLIPSIS);
            return;
        }
        memcpy(ret_text + used, character, kept);
        used += kept;
        if (used + sizeof ELLIPSIS <= size)
            fits = used;
        if (is_space(*text))
            text += strspn(text, " \t\n\r");
        else
            text += length ? length : 1;
    }
    ret_text[used] = '\0';
}

static json_t *shortened(const char *text, size_t most)
{
    char kept[RECORDED_TEXT_MAX + 1];
    recorder_shorten(text, kept, most + 1);
    return json_string(kept);
}

/* ---- the recorder ---------------------------------------------------------------------------------------------- */

struct recorder *recorder_new(void)
{
    struct recorder *recorder = calloc(1, sizeof *recorder);
    if (recorder)
        pthread_mutex_init(&recorder->mutex, NULL);
    return recorder;
}

void recorder_clear(struct recorder *recorder)
{
    pthread_mutex_lock(&recorder->mutex);
    for (unsigned i = 0; i < recorder->count && i < RECORDED_MAX; i++) {
        json_decref(recorder->requests[i]);
        recorder->requests[i] = NULL;
    }
    recorder->count = recorder->answered = 0;
    pthread_mutex_unlock(&recorder->mutex);
}

void recorder_free(struct recorder *recorder)
{
    if (!recorder)
        return;
    recorder_clear(recorder);
    pthread_mutex_destroy(&recorder->mutex);
    free(recorder);
}

unsigned recorder_count(struct recorder *recorder, unsigned *ret_answered)
{
    pthread_mutex_lock(&recorder->mutex);
    unsigned count = recorder->count;
    *ret_answered = recorder->answered;
    pthread_mutex_unlock(&recorder->mutex);
    return count;
}

json_t *recorder_request(struct recorder *recorder, unsigned i, const void **ret_connection)
{
    pthread_mutex_lock(&recorder->mutex);
    bool is_kept = i < recorder->count && i < RECORDED_MAX;
    json_t *request = is_kept ? json_deep_copy(recorder->requests[i]) : NULL;
    *ret_connection = is_kept ? recorder->connections[i] : NULL;
    pthread_mutex_unlock(&recorder->mutex);
    return request;
}

unsigned recorder_add(struct recorder *recorder, const char *to, const void *connection, const char *text,
                      const char *const *values, int value_count)
{
    json_t *list = json_array();
    for (int i = 0; i < value_count && i < RECORDED_VALUES_MAX; i++)
        json_array_append_new(list, values[i] ? shortened(values[i], RECORDED_VALUE_MAX) : json_null());
    json_t *request = json_pack("{s:s, s:o, s:o, s:n}", "to", to, "text", shortened(text, RECORDED_TEXT_MAX),
                                "values", list, "answer");
    pthread_mutex_lock(&recorder->mutex);
    unsigned i = recorder->count++;
    if (i < RECORDED_MAX) {
        recorder->requests[i] = request;
        recorder->connections[i] = connection;
        request = NULL;
    }
    pthread_mutex_unlock(&recorder->mutex);
    json_decref(request);
    return i + 1;
}

void recorder_answer(struct recorder *recorder, unsigned request, const char *answer)
{
    json_t *text = shortened(answer, RECORDED_ANSWER_MAX);
    pthread_mutex_lock(&recorder->mutex);
    if (request <= recorder->count && request > recorder->answered)
        recorder->answered = request;
    if (request <= recorder->count && request <= RECORDED_MAX)
        json_object_set(recorder->requests[request - 1], "answer", text);
    pthread_mutex_unlock(&recorder->mutex);
    json_decref(text);
}
