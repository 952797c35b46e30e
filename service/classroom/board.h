/* The class board: the learners of a class, the lessons that each has solved, one question with its votes, and the last message that
 * the teacher sent to all. It is in memory only. A learner is identified by the product of the sandbox. Any thread may call. */
#ifndef OVERSELL_SERVICE_CLASSROOM_BOARD_H
#define OVERSELL_SERVICE_CLASSROOM_BOARD_H

#include "service/classroom/sandbox.h"

enum {
    BOARD_NAME_SIZE = 41, /* this size and the next three are in bytes, with the NUL */
    BOARD_QUESTION_SIZE = 161,
    BOARD_ANSWER_SIZE = 61,
    BOARD_PUSH_SIZE = 1001,
    BOARD_ANSWERS_LEAST = 2,
    BOARD_ANSWERS_MOST = 6,
    BOARD_LESSONS = 63, /* lessons have the numbers 1 to 63 */
    BOARD_NONE = -1,
};

struct board;

struct board_learner {
    int64_t product_id;
    char name[BOARD_NAME_SIZE];
    uint64_t solved; /* bit N: lesson N is solved */
    int vote;        /* the learner's answer to the current question, from 0, or BOARD_NONE */
};

struct board_question {
    int64_t id; /* 0: the board shows no question */
    bool is_open;
    int answer_count;
    int right; /* the right answer, from 0, or BOARD_NONE; set only when the question is closed */
    char text[BOARD_QUESTION_SIZE];
    char answers[BOARD_ANSWERS_MOST][BOARD_ANSWER_SIZE];
};

enum push_kind { PUSH_NOTHING, PUSH_STRATEGY, PUSH_SCHEDULE };
struct board_push {
    int64_t id;
    enum push_kind kind;
    char text[BOARD_PUSH_SIZE];
};

/* A copy of the board at one moment. */
struct board_view {
    int64_t version; /* grows with every change of the board */
    int64_t news;    /* grows with every change of the question and the push */
    struct board_question question;
    struct board_push push;
    int learner_count;
    struct board_learner learners[SANDBOXES_MAX]; /* in the order in which they joined */
};

enum board_result {
    BOARD_DONE,
    BOARD_NO_LEARNER,  /* the product is no learner's */
    BOARD_NO_QUESTION, /* the board shows no question, or not the one with this id */
    BOARD_CLOSED,      /* the question is closed */
    BOARD_NO_ANSWER,   /* the question has no such answer */
    BOARD_NO_EXERCISE  /* the learner has run fewer exercises than that */
};

/* Makes an empty board, which the caller frees. The first change gets the version FIRST_VERSION + 1. Each start of the service must pass a
 * different FIRST_VERSION. NULL: out of memory. */
struct board *board_new(int64_t first_version);
void board_free(struct board *board);

/* Copies TEXT to RET_TEXT (SIZE bytes) without the spaces around it. False: the rest does not fit, is empty, is not valid UTF-8, or
 * contains a control character (text_is_control). */
bool board_text(const char *text, char *ret_text, size_t size);

/* Adds a learner, and removes an earlier learner with this product. NAME is "" or a result of board_text. False: the board is full. */
bool board_join(struct board *board, int64_t product_id, const char *name);
/* Removes the learner who has the product, if there is one. */
void board_leave(struct board *board, int64_t product_id);

/* Marks these lessons as solved by the learner, if all that are solved are not more than EXERCISES. LESSONS: bit N is lesson N. */
enum board_result board_solve(struct board *board, int64_t product_id, uint64_t lessons, int exercises);

/* Replaces the question by a copy of this one, which is open and has no votes. Ignores the id, is_open and right of QUESTION. Returns the
 * new id. */
int64_t board_ask(struct board *board, const struct board_question *question);
/* Removes the question from the board, open or closed. Later questions have other ids. */
enum board_result board_clear(struct board *board);
/* Closes the question, if it is open. RIGHT: its right answer, from 0, or BOARD_NONE, which keeps a right answer that was set before. */
enum board_result board_close(struct board *board, int right);
/* Sets the learner's vote. A later vote replaces it while the question is open. */
enum board_result board_vote(struct board *board, int64_t product_id, int64_t question_id, int answer);

/* Sends TEXT to all learners, and replaces the message before. Returns its id. */
int64_t board_send(struct board *board, enum push_kind kind, const char *text);

/* Copies the board. */
void board_look(struct board *board, struct board_view *ret_view);
/* Copies the board without its learners. *RET_VOTE: the vote of the learner who has the product, or BOARD_NONE. */
void board_news(struct board *board, int64_t product_id, struct board_view *ret_view, int *ret_vote);
/* Returns the board's `news`: the version of its question and its message. */
int64_t board_news_version(struct board *board);

#endif
