/* Derives the evidence against a strategy from the result of one phase of a load run, and describes it in a sentence. */
#include "loadtest/load/finding.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

/* Sets *FLAG, a member of the evidence. Writes the sentence, unless FINDING already has one. */
__attribute__((format(printf, 4, 5))) static void note(bool shown, bool *flag, char *finding,
                                                       const char *format, ...)
{
    if (!shown)
        return;
    *flag = true;
    if (finding[0])
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(finding, FINDING_MAX, format, arguments);
    va_end(arguments);
}

/* The first answer to a last call other than "created" and "sold out"; ANSWER_CREATED: there is none. */
static enum answer odd_last_call(const struct phase *phase)
{
    for (size_t i = 0; i < phase->last_calls; i++)
        if (phase->last_call[i] > ANSWER_SOLD_OUT)
            return phase->last_call[i];
    return ANSWER_CREATED;
}

static bool last_call_sold_out(const struct phase *phase)
{
    for (size_t i = 0; i < phase->last_calls; i++)
        if (phase->last_call[i] == ANSWER_SOLD_OUT)
            return true;
    return false;
}

/* The stock never rises during a sell-out. So "sold out" was wrong if enough units are left at the end, or if an order that
 * was sent later got them. An order without competitors has no reason to fail. */
static void find_refusals(const struct phase *phase, struct evidence *evidence, char *finding)
{
    const struct answers *answers = &phase->load.answers;
    bool enough = phase->books.left >= phase->quantity;
    enum answer odd = odd_last_call(phase);
    note(enough && (answers->sold_out > 0 || last_call_sold_out(phase)), &evidence->refused, finding,
         "the service answered \"sold out\" to orders of %" PRId64 ", although %" PRId64 " units are left",
         phase->quantity, phase->books.left);
    note(answers->created_late > 0, &evidence->refused, finding,
         "the service answered \"sold out\", and created %" PRId64 " orders that were sent later",
         answers->created_late);
    note(enough && odd != ANSWER_CREATED, &evidence->refused, finding,
         "the service answered \"%s\" to an order without competitors, although %" PRId64 " units are left",
         answer_name(odd), phase->books.left);
}

/* With no other order in progress, only a leaked lock can make an order wait. */
static void find_leaked_lock(const struct phase *phase, const struct subject *subject,
                             struct evidence *evidence, char *finding)
{
    note(
        subject->lock && odd_last_call(phase) == ANSWER_LOCK_BUSY, &evidence->lock_leaked, finding,
        "the lock %s was not released: an order could not acquire it although no other order was in progress",
        subject->lock);
}

void find(const struct phase *phase, const struct subject *subject, struct evidence *evidence,
          char finding[FINDING_MAX])
{
    const struct answers *answers = &phase->load.answers;
    const struct books *books = &phase->books;
    if (!phase->ran)
        return;
    bool covered = verdict_promise_covers(evidence->guarantee, evidence->instances);
    bool safe = evidence->guarantee == GUARANTEE_SAFE, ignored = false;
    add_books(evidence, books);
    note(!phase_answers_match(phase), &evidence->answers_wrong, finding,
         "the service acknowledged %" PRId64 " orders, but the database has %" PRId64, answers->created,
         books->orders);
    note(books->amounts_wrong > 0, &evidence->amounts_wrong, finding,
         "%" PRId64 " orders have an amount that differs from price times quantity", books->amounts_wrong);
    if (covered) {
        note(evidence->books_off, &ignored, finding,
             "sold %" PRId64 " of %" PRId64 " units, but the stock shows %" PRId64 " left", books->sold,
             books->initial, books->left);
        if (phase->sells_out) {
            find_leaked_lock(phase, subject, evidence, finding);
            find_refusals(phase, evidence, finding);
        }
    }
    note(safe && subject->tries == 1 && answers->conflict > 0, &evidence->conflicted, finding,
         "%" PRId64
         " orders ended in a conflict, such as a deadlock, although the strategy must not have conflicts",
         answers->conflict);
    int64_t failed = answers->errors - (phase->hasty ? answers->unavailable : 0);
    note(safe && failed > 0, &evidence->failed, finding,
         "%" PRId64 " orders failed although no fault was injected", failed);
    note(safe && odd_last_call(phase) >= ANSWER_UNAVAILABLE, &evidence->failed, finding,
         "the service answered \"%s\" to an order without competitors", answer_name(odd_last_call(phase)));
    note(answers->created == 0 && phase->stock >= phase->quantity, &evidence->sold_nothing, finding,
         "the service created no order");
}
