/* Tells what an answer of a user's service means: check and explore count by the same rules. No I/O. Any thread. */
#ifndef OVERSELL_LOADTEST_OWN_ANSWER_MEANING_H
#define OVERSELL_LOADTEST_OWN_ANSWER_MEANING_H

#include "loadtest/own/description.h"

enum { SHOP_HINT = 240 };

/* An answer as it came. */
struct shop_reply {
    long status;
    const char *location; /* where a redirect leads; NULL: nowhere */
    const char *body;     /* ended by a 0; NULL: empty */
};

/* The first rule that fits decides: one that looks at the content, else one with a status alone, else every 2xx means sold if "sold" is not
 * given. An answer that is not JSON fits no rule with "has" or "lacks". */
enum shop_meaning shop_meaning_of(const struct shop_description *description, const struct shop_reply *reply);
/* Writes which item the file lacks if REPLY may mean something else than shop_meaning_of says, as what follows "Add"; "": none. */
void shop_hint_of(const struct shop_description *description, const struct shop_reply *reply,
                  char ret_hint[static SHOP_HINT]);

#endif
