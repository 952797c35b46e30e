/* Keeps orders and changes of what they stand on apart: a reset waits until no order of the product runs, and a
 * switch of the strategy until none runs that it concerns, so that no two strategies ever write side by side in a
 * process. A product may have settings of its own, which the common ones then do not concern. */
#ifndef OVERSELL_SERVICE_GATE_H
#define OVERSELL_SERVICE_GATE_H

#include "service/strategy.h"

/* What PUT /strategy sets. */
struct settings {
    const struct strategy *strategy;
    int64_t lock_ttl_ms;
    int64_t lock_wait_ms;
    int64_t think_ms;
    int64_t product_limit; /* orders of one product in the database at once; 0: any number */
};

struct gate;

struct gate *gate_new(const struct settings *settings);
void gate_free(struct gate *gate);

/* An order of PRODUCT begins: waits while the product is being reset or the settings are being switched, until
 * DEADLINE (monotonic_us) at most; false if that came first. *ret_settings is a copy. */
bool gate_enter(struct gate *gate, int64_t product_id, int64_t deadline_us, struct settings *ret_settings);
/* The same without waiting: false where there would be something to wait for. */
bool gate_try_enter(struct gate *gate, int64_t product_id, struct settings *ret_settings);
void gate_leave(struct gate *gate, int64_t product_id);

/* Keeps new orders of the product out and waits for the running ones; false if DEADLINE came first (then nothing is
 * kept out). Ended by gate_open. */
bool gate_close(struct gate *gate, int64_t product_id, int64_t deadline_us);
void gate_open(struct gate *gate, int64_t product_id);

/* A sale of the product begins, its orders from before are gone; and when the last one began (monotonic_us), of this
 * product or one that shares its place here; 0: none has. */
void gate_begin_sale(struct gate *gate, int64_t product_id);
int64_t gate_sale_us(struct gate *gate, int64_t product_id);

/* The common settings. */
struct settings gate_settings(struct gate *gate);
/* The settings that orders of the product are placed under: its own, or the common ones. */
struct settings gate_settings_of(struct gate *gate, int64_t product_id);
/* Waits for the running orders while new ones are kept out, then changes what CHANGES has (a strategy that is not NULL,
 * numbers that are not negative) and leaves the rest as another switch may just have set it; *ret_settings are the new
 * ones. False if DEADLINE came first: nothing is changed. */
bool gate_switch(struct gate *gate, const struct settings *changes, int64_t deadline_us,
                 struct settings *ret_settings);

bool gate_has_own(struct gate *gate, int64_t product_id);

/* So many products can have settings of their own, which they keep while the process lives. */
enum { OWN_SETTINGS_MAX = 256 };
/* Changes the product's own settings, which it gets from the common ones if it has none yet. The product must be closed
 * (gate_close). False: there is no room for another product. */
bool gate_set_own(struct gate *gate, int64_t product_id, const struct settings *changes,
                  struct settings *ret_settings);

#endif
