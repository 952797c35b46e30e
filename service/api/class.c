/* The class board over HTTP: the teacher asks and sends, learners vote and report solved lessons. The board is in memory, so the HTTP
 * threads answer. No answer contains a token. */
#include "service/api/api.h"

#include "base/recorder.h"

#include "service/classroom/addresses.h"
#include "service/classroom/board.h"
#include "service/classroom/qr_code.h"
#include "service/engine/strategy.h"
#include "service/http/host_name.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { URL_SIZE = 300, JOIN_SIZE = URL_SIZE + 20 + CLASS_CODE_SIZE };

/* False with a reply made where there is no class. */
static bool is_class(struct exchange *x)
{
    const struct service *service = x->app;
    if (service->config.classroom)
        return true;
    reply_problem(x, PROBLEM_NOT_FOUND, NULL,
                  "there is no class, so there is no class board; start the service with --classroom");
    return false;
}

/* False with a reply made where the caller is not a learner. */
static bool is_learner(struct exchange *x)
{
    if (access_sandbox(x))
        return true;
    reply_problem(
        x, PROBLEM_NOT_YOURS, NULL,
        "only a learner can make this call; join the class with the class code, and send the sandbox's token");
    return false;
}

static const char *const sources[] = {
    [ADDRESS_OF_PAGE] = "page",
    [ADDRESS_OF_INTERFACE] = "interface",
    [ADDRESS_OF_CONTAINER] = "container",
    [ADDRESS_LOOPBACK] = "loopback",
};

/* Finds the address for learners, and *ret_source. RET_URL is "" if there is none. False with a reply made. Others than our page can give
 * any origin and any header, but only the caller gets this answer. */
static bool find_address(struct exchange *x, char ret_url[static URL_SIZE], enum address_source *ret_source)
{
    const struct service *service = x->app;
    char origin[URL_SIZE];
    int found = http_query(x, "origin", origin, sizeof origin);
    const char *host = found != 1                            ? NULL
                       : strncmp(origin, "http://", 7) == 0  ? origin + 7
                       : strncmp(origin, "https://", 8) == 0 ? origin + 8
                                                             : NULL;
    if (found != 0 && (!host || !host_is_well_formed(host))) {
        reply_problem(
            x, PROBLEM_BAD_REQUEST, NULL,
            "origin must be the address of the page up to its path, as in https://shop.example:8080");
        return false;
    }
    const struct page_address page = {.origin = host ? origin : NULL,
                                      .host = http_header(x, "Host"),
                                      .scheme = http_header(x, "X-Forwarded-Proto")};
    *ret_source = address_for_learners(&service->config, atomic_load(&service->port), &page,
                                       is_in_container(), ret_url, URL_SIZE);
    return true;
}

static json_t *or_null(int number)
{
    return number == BOARD_NONE ? json_null() : json_integer(number);
}

/* The question as learners see it; null if there is none. */
static json_t *question_json(const struct board_question *question)
{
    if (question->id == 0)
        return json_null();
    json_t *answers = json_array();
    for (int i = 0; i < question->answer_count; i++)
        json_array_append_new(answers, json_string(question->answers[i]));
    return json_pack("{s:I, s:s, s:o, s:b, s:o}", "id", (json_int_t)question->id, "text", question->text,
                     "answers", answers, "open", question->is_open, "right", or_null(question->right));
}

static json_t *push_json(const struct board_push *push)
{
    if (push->kind == PUSH_NOTHING)
        return json_null();
    return json_pack("{s:I, s:s, s:s}", "id", (json_int_t)push->id, "kind",
                     push->kind == PUSH_STRATEGY ? "strategy" : "schedule", "text", push->text);
}

void class_news(struct exchange *x, struct worker *worker)
{
    (void)worker;
    const struct service *service = x->app;
    int64_t known;
    if (!is_class(x) || !api_query_integer(x, "version", 0, 0, INT64_MAX, &known))
        return;
    http_set_fixed_header(x, "Cache-Control", "no-store");
    int64_t version = board_news_version(service->board);
    if (version == known) {
        http_reply_json(x, 200, json_pack("{s:I}", "version", (json_int_t)version));
        return;
    }
    struct board_view view;
    int vote;
    board_news(service->board, access_sandbox(x), &view, &vote);
    http_reply_json(x, 200,
                    json_pack("{s:I, s:o, s:o, s:o}", "version", (json_int_t)view.news, "question",
                              question_json(&view.question), "vote", or_null(vote), "push",
                              push_json(&view.push)));
}

static json_t *solved_json(uint64_t solved)
{
    json_t *lessons = json_array();
    for (int lesson = 1; lesson <= BOARD_LESSONS; lesson++)
        if (solved >> lesson & 1)
            json_array_append_new(lessons, json_integer(lesson));
    return lessons;
}

enum { AWAY_MS = 60000 }; /* a page that is open and visible asks for news every few seconds */

/* Is no page of the learner open and visible? A place that has just ended counts as away. */
static bool is_away(const struct sandbox_info *places, int count, int64_t product_id)
{
    for (int i = 0; i < count; i++)
        if (places[i].product_id == product_id)
            return places[i].idle_ms > AWAY_MS;
    return true;
}

static json_t *learners_json(const struct service *service, const struct board_view *view)
{
    struct sandbox_info places[SANDBOXES_MAX];
    int count = sandbox_list(service->sandboxes, places);
    json_t *learners = json_array();
    for (int i = 0; i < view->learner_count; i++) {
        const struct board_learner *learner = &view->learners[i];
        json_array_append_new(learners,
                              json_pack("{s:I, s:s, s:o, s:b, s:b}", "product_id",
                                        (json_int_t)learner->product_id, "name", learner->name, "solved",
                                        solved_json(learner->solved), "voted", learner->vote != BOARD_NONE,
                                        "away", is_away(places, count, learner->product_id)));
    }
    return learners;
}

static json_t *votes_json(const struct board_view *view)
{
    int counts[BOARD_ANSWERS_MOST] = {0};
    for (int i = 0; i < view->learner_count; i++)
        if (view->learners[i].vote != BOARD_NONE)
            counts[view->learners[i].vote]++;
    json_t *votes = json_array();
    for (int i = 0; i < view->question.answer_count; i++)
        json_array_append_new(votes, json_integer(counts[i]));
    return votes;
}

void class_board(struct exchange *x, struct worker *worker)
{
    (void)worker;
    const struct service *service = x->app;
    if (!is_class(x))
        return;
    struct board_view view;
    char url[URL_SIZE], code[CLASS_CODE_SIZE];
    enum address_source source;
    if (!find_address(x, url, &source))
        return;
    board_look(service->board, &view);
    sandboxes_code(service->sandboxes, code);
    http_set_fixed_header(x, "Cache-Control", "no-store"); /* the code is for the teacher to show */
    http_reply_json(x, 200,
                    json_pack("{s:I, s:s?, s:s, s:s, s:o, s:o, s:o, s:o}", "version",
                              (json_int_t)view.version, "address", url[0] ? url : NULL, "address_of",
                              sources[source], "code", code, "learners", learners_json(service, &view),
                              "question", question_json(&view.question), "votes", votes_json(&view), "push",
                              push_json(&view.push)));
}

void class_address(struct exchange *x, struct worker *worker)
{
    (void)worker;
    const struct service *service = x->app;
    char url[URL_SIZE], code[CLASS_CODE_SIZE], join[JOIN_SIZE];
    if (!is_class(x))
        return;
    enum address_source source;
    if (!find_address(x, url, &source))
        return;
    if (source == ADDRESS_OF_CONTAINER) {
        reply_problem(
            x, PROBLEM_NOT_FOUND, NULL,
            "the service runs in a container, so it does not know the address of its machine; open the class board at an "
            "address that learners can open");
        return;
    }
    if (!url[0]) {
        reply_problem(x, PROBLEM_NOT_FOUND, NULL,
                      "no other computer can reach this service; start it with --listen 0.0.0.0:%u",
                      atomic_load(&service->port));
        return;
    }
    sandboxes_code(service->sandboxes, code);
    snprintf(join, sizeof join, "%s/#join=%s", url, code);
    char *svg = qr_code_svg(join);
    if (!svg) {
        reply_problem(x, PROBLEM_INTERNAL_ERROR, NULL, "the QR code could not be made");
        return;
    }
    http_set_fixed_header(x, "Cache-Control", "no-store");
    http_reply_body(x, 200, "image/svg+xml", svg, strlen(svg));
}

/* Reads a text for the board; false with a reply made. */
static bool read_text(struct exchange *x, const char *member, const char *text, char *ret_text, size_t size)
{
    if (board_text(text, ret_text, size))
        return true;
    reply_problem(x, PROBLEM_INVALID_ORDER, json_pack("{s:s}", "member", member),
                  "%s must have from 1 to %zu bytes, without control characters", member, size - 1);
    return false;
}

/* Does the answer differ from those before it? False with a reply made. */
static bool is_new_answer(struct exchange *x, const struct board_question *question, int index)
{
    for (int i = 0; i < index; i++)
        if (strcmp(question->answers[i], question->answers[index]) == 0) {
            reply_problem(x, PROBLEM_INVALID_ORDER, json_pack("{s:s}", "member", "answers"),
                          "two answers are '%s'; make the answers different", question->answers[index]);
            return false;
        }
    return true;
}

void class_ask(struct exchange *x, struct worker *worker)
{
    (void)worker;
    const struct service *service = x->app;
    const char *text = NULL;
    json_t *answers = NULL;
    const struct member members[] = {
        {"text", BODY_STRING, true, &text, 1, BOARD_QUESTION_SIZE - 1},
        {"answers", BODY_NAMES, true, &answers, BOARD_ANSWERS_LEAST, BOARD_ANSWERS_MOST},
        {0},
    };
    AUTO_JSON body = api_body(x, members);
    struct board_question question = {.answer_count = (int)json_array_size(answers)};
    if (!body || !is_class(x) || !read_text(x, "text", text, question.text, sizeof question.text))
        return;
    for (int i = 0; i < question.answer_count; i++)
        if (!read_text(x, "answers", json_string_value(json_array_get(answers, (size_t)i)),
                       question.answers[i], sizeof question.answers[i]) ||
            !is_new_answer(x, &question, i))
            return;
    http_reply_json(x, 201, json_pack("{s:I}", "id", (json_int_t)board_ask(service->board, &question)));
}

/* Replies with the problem for a RESULT that is not BOARD_DONE. */
static void reply_result(struct exchange *x, enum board_result result)
{
    switch (result) {
    case BOARD_NO_LEARNER:
        reply_problem(x, PROBLEM_NOT_FOUND, NULL, "you are not on the class board; join the class again");
        break;
    case BOARD_NO_QUESTION:
        reply_problem(
            x, PROBLEM_NOT_FOUND, NULL,
            "the board does not show this question; use the one that it shows, or wait for the next one");
        break;
    case BOARD_CLOSED:
        reply_problem(
            x, PROBLEM_QUESTION_CLOSED, NULL,
            "the teacher has closed this question, so your vote was not counted; wait for the next one");
        break;
    case BOARD_NO_ANSWER:
        reply_problem(x, PROBLEM_INVALID_ORDER, NULL,
                      "the question has no such answer; the first answer is 0");
        break;
    case BOARD_NO_EXERCISE:
        reply_problem(
            x, PROBLEM_EXERCISE_MISSING, NULL,
            "each solved lesson needs an exercise that you have run in this class: a schedule run to its end, or a search; "
            "run the lesson's exercise, and report the lesson again");
        break;
    case BOARD_DONE: break;
    }
}

void class_clear(struct exchange *x, struct worker *worker)
{
    (void)worker;
    const struct service *service = x->app;
    if (!is_class(x))
        return;
    enum board_result result = board_clear(service->board);
    if (result == BOARD_DONE)
        http_reply_json(x, 200, json_pack("{s:n}", "question"));
    else
        reply_result(x, result);
}

void class_close(struct exchange *x, struct worker *worker)
{
    (void)worker;
    const struct service *service = x->app;
    int64_t right = BOARD_NONE;
    const struct member members[] = {{"right", BODY_INTEGER, false, &right, 0, BOARD_ANSWERS_MOST - 1}, {0}};
    AUTO_JSON body = api_body(x, members);
    if (!body || !is_class(x))
        return;
    enum board_result result = board_close(service->board, (int)right);
    if (result == BOARD_DONE)
        http_reply_json(x, 200, json_pack("{s:o}", "right", or_null((int)right)));
    else
        reply_result(x, result);
}

/* Does the schedule begin with a strategy that can be stepped through? False with a reply made. */
static bool is_schedule(struct exchange *x, const char *schedule)
{
    char name[64], shown[41];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(schedule, " "), schedule);
    const struct strategy *strategy = strategy_find(name);
    if (strategy && strategy_has_steps(strategy))
        return true;
    recorder_shorten(name, shown, sizeof shown);
    reply_problem(x, PROBLEM_INVALID_ORDER, json_pack("{s:s}", "member", "schedule"),
                  "%s is no strategy with steps; begin the schedule with one, as in read-write s=1 q=1,1",
                  shown);
    return false;
}

/* May all learners use the strategy on their products? False with a reply made. */
static bool can_be_sent(struct exchange *x, const char *name)
{
    const struct strategy *strategy = api_strategy(x, "strategy", name);
    if (strategy && strategy->take_stock->locks_all)
        reply_problem(x, PROBLEM_INVALID_ORDER, json_pack("{s:s}", "member", "strategy"),
                      "%s locks the products of all learners; send a schedule for /steps instead",
                      strategy->name);
    return strategy && x->status == 0;
}

void class_push(struct exchange *x, struct worker *worker)
{
    (void)worker;
    const struct service *service = x->app;
    const char *strategy = NULL, *schedule = NULL;
    char text[BOARD_PUSH_SIZE] = "";
    const struct member members[] = {
        {"strategy", BODY_STRING, false, &strategy, 1, BOARD_PUSH_SIZE - 1},
        {"schedule", BODY_STRING, false, &schedule, 1, BOARD_PUSH_SIZE - 1},
        {0},
    };
    AUTO_JSON body = api_body(x, members);
    if (!body || !is_class(x))
        return;
    if (strategy && schedule) {
        reply_problem(x, PROBLEM_BAD_REQUEST, NULL, "send a strategy or a schedule, not both");
        return;
    }
    if ((strategy && !can_be_sent(x, strategy)) || (schedule && !is_schedule(x, schedule)))
        return;
    if ((strategy || schedule) &&
        !read_text(x, strategy ? "strategy" : "schedule", strategy ? strategy : schedule, text, sizeof text))
        return;
    enum push_kind kind = strategy ? PUSH_STRATEGY : schedule ? PUSH_SCHEDULE : PUSH_NOTHING;
    http_reply_json(x, 200, json_pack("{s:I}", "id", (json_int_t)board_send(service->board, kind, text)));
}

void class_vote(struct exchange *x, struct worker *worker)
{
    (void)worker;
    const struct service *service = x->app;
    int64_t question = 0, answer = 0;
    const struct member members[] = {
        {"question", BODY_INTEGER, true, &question, 1, INT64_MAX},
        {"answer", BODY_INTEGER, true, &answer, 0, BOARD_ANSWERS_MOST - 1},
        {0},
    };
    AUTO_JSON body = api_body(x, members);
    if (!body || !is_class(x) || !is_learner(x))
        return;
    enum board_result result = board_vote(service->board, access_sandbox(x), question, (int)answer);
    if (result == BOARD_DONE)
        http_reply_json(
            x, 200, json_pack("{s:I, s:I}", "question", (json_int_t)question, "answer", (json_int_t)answer));
    else
        reply_result(x, result);
}

/* The number that a lesson's name begins with, as in "01-lost-update"; 0: it has none. */
static int lesson_number(const char *name)
{
    char *end;
    if (name[0] < '0' || name[0] > '9')
        return 0;
    long number = strtol(name, &end, 10);
    return (*end == '-' || *end == '\0') && number > 0 && number <= BOARD_LESSONS ? (int)number : 0;
}

void class_solved(struct exchange *x, struct worker *worker)
{
    (void)worker;
    const struct service *service = x->app;
    json_t *lessons = NULL;
    const struct member members[] = {{"lessons", BODY_NAMES, true, &lessons, 0, BOARD_LESSONS}, {0}};
    AUTO_JSON body = api_body(x, members);
    if (!body || !is_class(x) || !is_learner(x))
        return;
    uint64_t solved = 0;
    size_t i;
    json_t *lesson;
    json_array_foreach(lessons, i, lesson) {
        int number = lesson_number(json_string_value(lesson));
        if (number == 0) {
            char name[61];
            recorder_shorten(json_string_value(lesson), name, sizeof name);
            reply_problem(x, PROBLEM_INVALID_ORDER, json_pack("{s:s}", "member", "lessons"),
                          "'%s' is not a lesson; a lesson's name begins with its number, from 1 to %d", name,
                          BOARD_LESSONS);
            return;
        }
        solved |= UINT64_C(1) << number;
    }
    enum board_result result = board_solve(service->board, access_sandbox(x), solved,
                                           sandbox_exercises(service->sandboxes, access_sandbox(x)));
    if (result == BOARD_DONE)
        http_reply_json(x, 200, json_pack("{s:o}", "lessons", solved_json(solved)));
    else
        reply_result(x, result);
}
