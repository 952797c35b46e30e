/* Turns at a product: so many of its orders go at once, the others stand in line, first come, first served.
 *
 * Who gets a turn keeps it: when the order is done it asks for the next of the line and goes on with that one, and with
 * several at a time where they are written together. So a line that is not empty always has somebody who serves it, and
 * who waits in it keeps no thread. */
#ifndef OVERSELL_SERVICE_TURNS_H
#define OVERSELL_SERVICE_TURNS_H

#include <stddef.h>
#include <stdint.h>

struct turns;

/* What stands in a line; part of the thing that waits, and no other's while it does. */
struct waiting {
    struct waiting *next;
};

/* NULL when out of memory. BOUND is how many may wait, at all products together. */
struct turns *turns_new(size_t bound);
/* Nobody may wait any more. TURNS may be NULL. */
void turns_free(struct turns *turns);

enum turn {
    TURN_NOW,   /* it goes at once; turns_next when it is done */
    TURN_LATER, /* it waits, and belongs to whoever is handed it by turns_next */
    TURN_NEVER  /* too many wait already, or memory is out */
};

/* WHO wants to go where at most LIMIT go at a time; the same LIMIT for all that are under way. Any thread. */
enum turn turns_ask(struct turns *turns, int64_t product_id, int limit, struct waiting *who);

/* A turn is over. The first of those who wait, at most MOST of them, linked in the order of their arrival, take it over;
 * NULL: nobody waits, and the turn is given back. Any thread. */
struct waiting *turns_next(struct turns *turns, int64_t product_id, size_t most);

/* How many wait now: at one product, or at all (0). */
size_t turns_waiting(struct turns *turns, int64_t product_id);

#endif
