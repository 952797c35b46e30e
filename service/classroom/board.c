/* The class board, in memory: learners, solved lessons, one question with votes, and what the teacher has sent to all. */
#include "service/classroom/board.h"

#include "base/text.h"

#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct board {
    pthread_mutex_t mutex; /* guards all below */
    struct board_view now;
    int64_t last_question; /* the id that was given last; 0: none */
};

struct board *board_new(int64_t first_version)
{
    struct board *board = calloc(1, sizeof *board);
    if (!board)
        return NULL;
    pthread_mutex_init(&board->mutex, NULL);
    board->now.version = board->now.news = first_version;
    board->now.question.right = BOARD_NONE;
    return board;
}

void board_free(struct board *board)
{
    if (!board)
        return;
    pthread_mutex_destroy(&board->mutex);
    free(board);
}

bool board_text(const char *text, char *ret_text, size_t size)
{
    text += strspn(text, " ");
    size_t length = strlen(text);
    while (length > 0 && text[length - 1] == ' ')
        length--;
    if (length == 0 || length >= size)
        return false;
    for (size_t at = 0; at < length;) {
        size_t bytes;
        if (text_is_control(text_code_point(text + at, &bytes)) || bytes == 0)
            return false;
        at += bytes;
    }
    memcpy(ret_text, text, length);
    ret_text[length] = '\0';
    return true;
}

/* With the mutex held, as the next two. NULL: no learner has the product. */
static struct board_learner *find(struct board *board, int64_t product_id)
{
    for (int i = 0; i < board->now.learner_count; i++)
        if (board->now.learners[i].product_id == product_id)
            return &board->now.learners[i];
    return NULL;
}

static void leave(struct board *board, int64_t product_id)
{
    struct board_learner *learner = find(board, product_id);
    if (!learner)
        return;
    size_t after = (size_t)(board->now.learners + board->now.learner_count - (learner + 1));
    memmove(learner, learner + 1, after * sizeof *learner);
    board->now.learner_count--;
    board->now.version++;
}

static void news(struct board *board)
{
    board->now.version++;
    board->now.news++;
}

bool board_join(struct board *board, int64_t product_id, const char *name)
{
    pthread_mutex_lock(&board->mutex);
    leave(board, product_id);
    bool room = board->now.learner_count < SANDBOXES_MAX;
    if (room) {
        struct board_learner *learner = &board->now.learners[board->now.learner_count++];
        *learner = (struct board_learner){.product_id = product_id, .vote = BOARD_NONE};
        snprintf(learner->name, sizeof learner->name, "%s", name);
        board->now.version++;
    }
    pthread_mutex_unlock(&board->mutex);
    return room;
}

void board_leave(struct board *board, int64_t product_id)
{
    pthread_mutex_lock(&board->mutex);
    leave(board, product_id);
    pthread_mutex_unlock(&board->mutex);
}

enum board_result board_solve(struct board *board, int64_t product_id, uint64_t lessons, int exercises)
{
    enum board_result result = BOARD_DONE;
    pthread_mutex_lock(&board->mutex);
    struct board_learner *learner = find(board, product_id);
    if (!learner) {
        result = BOARD_NO_LEARNER;
    } else if (lessons & ~learner->solved) {
        if (__builtin_popcountll(lessons | learner->solved) > exercises) {
            result = BOARD_NO_EXERCISE;
        } else {
            learner->solved |= lessons;
            board->now.version++;
        }
    }
    pthread_mutex_unlock(&board->mutex);
    return result;
}

int64_t board_ask(struct board *board, const struct board_question *question)
{
    pthread_mutex_lock(&board->mutex);
    int64_t id = ++board->last_question;
    board->now.question = *question;
    board->now.question.id = id;
    board->now.question.is_open = true;
    board->now.question.right = BOARD_NONE;
    for (int i = 0; i < board->now.learner_count; i++)
        board->now.learners[i].vote = BOARD_NONE;
    news(board);
    pthread_mutex_unlock(&board->mutex);
    return id;
}

enum board_result board_clear(struct board *board)
{
    pthread_mutex_lock(&board->mutex);
    bool is_shown = board->now.question.id != 0;
    if (is_shown) {
        board->now.question = (struct board_question){.right = BOARD_NONE};
        for (int i = 0; i < board->now.learner_count; i++)
            board->now.learners[i].vote = BOARD_NONE;
        news(board);
    }
    pthread_mutex_unlock(&board->mutex);
    return is_shown ? BOARD_DONE : BOARD_NO_QUESTION;
}

enum board_result board_close(struct board *board, int right)
{
    enum board_result result = BOARD_DONE;
    pthread_mutex_lock(&board->mutex);
    struct board_question *question = &board->now.question;
    if (question->id == 0)
        result = BOARD_NO_QUESTION;
    else if (right != BOARD_NONE && (right < 0 || right >= question->answer_count))
        result = BOARD_NO_ANSWER;
    if (result == BOARD_DONE) {
        question->is_open = false;
        if (right != BOARD_NONE)
            question->right = right;
        news(board);
    }
    pthread_mutex_unlock(&board->mutex);
    return result;
}

enum board_result board_vote(struct board *board, int64_t product_id, int64_t question_id, int answer)
{
    enum board_result result = BOARD_DONE;
    pthread_mutex_lock(&board->mutex);
    struct board_learner *learner = find(board, product_id);
    const struct board_question *question = &board->now.question;
    if (!learner)
        result = BOARD_NO_LEARNER;
    else if (question->id == 0 || question->id != question_id)
        result = BOARD_NO_QUESTION;
    else if (!question->is_open)
        result = BOARD_CLOSED;
    else if (answer < 0 || answer >= question->answer_count)
        result = BOARD_NO_ANSWER;
    if (result == BOARD_DONE && learner->vote != answer) {
        learner->vote = answer;
        board->now.version++;
    }
    pthread_mutex_unlock(&board->mutex);
    return result;
}

int64_t board_send(struct board *board, enum push_kind kind, const char *text)
{
    pthread_mutex_lock(&board->mutex);
    struct board_push *push = &board->now.push;
    int64_t id = ++push->id;
    push->kind = kind;
    snprintf(push->text, sizeof push->text, "%s", text);
    news(board);
    pthread_mutex_unlock(&board->mutex);
    return id;
}

void board_look(struct board *board, struct board_view *ret_view)
{
    pthread_mutex_lock(&board->mutex);
    *ret_view = board->now;
    pthread_mutex_unlock(&board->mutex);
}

void board_news(struct board *board, int64_t product_id, struct board_view *ret_view, int *ret_vote)
{
    pthread_mutex_lock(&board->mutex);
    const struct board_learner *learner = find(board, product_id);
    *ret_vote = learner ? learner->vote : BOARD_NONE;
    memcpy(ret_view, &board->now, offsetof(struct board_view, learner_count));
    ret_view->learner_count = 0;
    pthread_mutex_unlock(&board->mutex);
}

int64_t board_news_version(struct board *board)
{
    pthread_mutex_lock(&board->mutex);
    int64_t version = board->now.news;
    pthread_mutex_unlock(&board->mutex);
    return version;
}
