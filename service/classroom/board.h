/* The class board: who is in the class, which lessons each learner has solved, one question with its votes, and what the teacher
 * has sent to all. Data in memory only. A learner is known by the product of the sandbox. Any thread may call. */
#ifndef OVERSELL_SERVICE_CLASSROOM_BOARD_H
#define OVERSELL_SERVICE_CLASSROOM_BOARD_H

#include "service/classroom/sandbox.h"

enum {
    BOARD_NAME_SIZE = 41, /* bytes with the NUL, as the next three */
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
    int vote;        /* the answer to the question that the board shows, from 0, or BOARD_NONE */
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
    BOARD_NO_ANSWER    /* the question has no such answer */
};

/* The versions begin above FIRST_VERSION, which must differ from one start of the service to the next. NULL: out of memory. */
struct board *board_new(int64_t first_version);
void board_free(struct board *board);

/* Copies TEXT to RET_TEXT of SIZE bytes without the spaces around it. False: the rest does not fit, is empty, is not valid UTF-8,
 * or has a character that controls a terminal or the direction of text. */
bool board_text(const char *text, char *ret_text, size_t size);

/* A learner has joined; an earlier learner with this product leaves. NAME as board_text made it, or "". False: the board is full. */
bool board_join(struct board *board, int64_t product_id, const char *name);
/* Nothing happens if no learner has the product. */
void board_leave(struct board *board, int64_t product_id);

/* Adds these lessons to those that the learner has solved. */
enum board_result board_solve(struct board *board, int64_t product_id, uint64_t lessons);

/* Opens a question in place of the one before, without votes; its id, is_open and right are ignored. Returns the new id. */
int64_t board_ask(struct board *board, const struct board_question *question);
/* Removes the question from the board, open or closed. Later questions have other ids. */
enum board_result board_clear(struct board *board);
/* Closes the question that is open. RIGHT: its right answer, or BOARD_NONE. A question that is closed already gets RIGHT,
 * and keeps an earlier answer if RIGHT is BOARD_NONE. */
enum board_result board_close(struct board *board, int right);
/* The learner's vote; a later one replaces it while the question is open. */
enum board_result board_vote(struct board *board, int64_t product_id, int64_t question_id, int answer);

/* Sends TEXT to all learners, in place of what was sent before. Returns its id. */
int64_t board_send(struct board *board, enum push_kind kind, const char *text);

void board_look(struct board *board, struct board_view *ret_view);
/* The same for one learner, without the learners: *ret_vote is the learner's vote, or BOARD_NONE. */
void board_news(struct board *board, int64_t product_id, struct board_view *ret_view, int *ret_vote);
/* The version of what learners see. */
int64_t board_news_version(struct board *board);

#endif
