/* The sandboxes of a class, and the class code that lets a learner in. A sandbox is a product with one learner as its owner, and
 * the token that proves it. Any thread. */
#ifndef OVERSELL_SERVICE_CLASSROOM_SANDBOX_H
#define OVERSELL_SERVICE_CLASSROOM_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SANDBOXES_MAX = 100, SECRET_SIZE = 33, SANDBOX_STOCK = 100 };

enum { SANDBOX_ADDRESS_SIZE = 48, SANDBOXES_RESERVED = 4 /* for the teacher */ };

enum { CLASS_CODE_SIZE = 10 }; /* four characters, a dash, four characters, NUL */

struct sandboxes;

/* Who wants a sandbox. */
struct sandbox_caller {
    char address[SANDBOX_ADDRESS_SIZE]; /* where the call comes from */
    bool is_teacher;                    /* may use the reserved places; no limit for the address */
};

/* One sandbox that a learner has. */
struct sandbox_info {
    int number; /* of its place, from 1 */
    int64_t product_id, idle_ms;
    int64_t orders;  /* that came with its token */
    bool is_expired; /* idle for so long that another learner may get the place */
    bool is_teachers;
    char address[SANDBOX_ADDRESS_SIZE];
};

/* What one address may have, at most: all places of learners. */
enum { SANDBOXES_OF_LEARNERS = SANDBOXES_MAX - SANDBOXES_RESERVED };

/* IDLE_MS: a sandbox without a call for this time may go to another learner. MOST_OF_ADDRESS: sandboxes that one address may
 * have; 0: any number. NULL: out of memory. */
struct sandboxes *sandboxes_new(int64_t idle_ms, int64_t most_of_address);
void sandboxes_free(struct sandboxes *sandboxes);

/* The sandboxes that one address may have; 0: any number. Those that it has already stay. */
void sandboxes_set_address_limit(struct sandboxes *sandboxes, int64_t most);
int64_t sandboxes_address_limit(struct sandboxes *sandboxes);

/* CODE replaces the class code. The sandboxes stay as they are. */
void sandboxes_set_code(struct sandboxes *sandboxes, const char code[static CLASS_CODE_SIZE]);
/* The same with a random code, which it writes to RET_CODE. */
void sandboxes_new_code(struct sandboxes *sandboxes, char ret_code[static CLASS_CODE_SIZE]);
/* Writes the class code to RET_CODE; "": there is none. */
void sandboxes_code(struct sandboxes *sandboxes, char ret_code[static CLASS_CODE_SIZE]);
/* Is TOKEN the class code? */
bool sandboxes_is_code(struct sandboxes *sandboxes, const char *token);

/* Takes a place that is free, or that nobody has used for IDLE_MS. The token of the previous learner becomes invalid.
 * *ret_product_id is the previous learner's product, 0 if there was none. Returns the place; the caller then calls
 * sandbox_give or sandbox_drop. SANDBOXES_FULL: no place is left for the caller; SANDBOX_ADDRESS_FULL: the caller's address
 * has reached its limit, and none of its sandboxes is idle. */
enum { SANDBOXES_FULL = -1, SANDBOX_ADDRESS_FULL = -2 };
int sandbox_take(struct sandboxes *sandboxes, const struct sandbox_caller *caller, int64_t *ret_product_id);
/* The place is a new learner's, with this product; RET_TOKEN of SECRET_SIZE bytes. */
void sandbox_give(struct sandboxes *sandboxes, int place, int64_t product_id, char *ret_token);
/* The place is nobody's; the next learner gets PRODUCT_ID, if it is not 0. */
void sandbox_drop(struct sandboxes *sandboxes, int place, int64_t product_id);

/* The product of the sandbox whose token this is, which counts as a use. 0: it is none, or it was idle for IDLE_MS and only the
 * teacher's places are left. SANDBOXES may be NULL. */
int64_t sandbox_owned(struct sandboxes *sandboxes, const char *token);
/* Lists the sandboxes of learners, sorted by place; returns the number. */
int sandbox_list(struct sandboxes *sandboxes, struct sandbox_info ret_list[static SANDBOXES_MAX]);
/* Ends the sandbox with this product: its token becomes invalid, and its place is free. False: there is none. */
bool sandbox_evict(struct sandboxes *sandboxes, int64_t product_id);
/* Ends all sandboxes of learners with this address in the same way, and writes their products. Returns their number. */
int sandbox_evict_address(struct sandboxes *sandboxes, const char *address,
                          int64_t ret_product_ids[static SANDBOXES_MAX]);
/* Whether the token was that of a sandbox which sandbox_evict ended. A place remembers one such token. SANDBOXES may be NULL. */
bool sandbox_was_evicted(struct sandboxes *sandboxes, const char *token);
/* The learner who has this product has run a schedule to its end, or searched: EXERCISE identifies it. The same one counts once, and no
 * more than SANDBOX_EXERCISES count. */
enum { SANDBOX_EXERCISES = 64 };
void sandbox_note_exercise(struct sandboxes *sandboxes, int64_t product_id, uint64_t exercise);
/* How many exercises the learner who has this product has run; 0 if nobody has had it. */
int sandbox_exercises(struct sandboxes *sandboxes, int64_t product_id);
/* The learner who has this product has sent an order. Nothing happens if nobody has it. */
void sandbox_count_order(struct sandboxes *sandboxes, int64_t product_id);
/* Counts a call, a search or else a step, of the learner who has this product, until sandbox_end_call. *ret_earlier: calls of
 * this kind that are counted already. False: they are MOST, and this one is not counted. */
bool sandbox_begin_call(struct sandboxes *sandboxes, int64_t product_id, bool is_search, unsigned most,
                        unsigned *ret_earlier);
/* A call that was counted has ended. The product may have another learner by now. */
void sandbox_end_call(struct sandboxes *sandboxes, int64_t product_id, bool is_search);
/* The number of sandboxes used in the last IDLE_MS. */
int sandbox_count(struct sandboxes *sandboxes);

#endif
