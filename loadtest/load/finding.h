/* Derives the evidence against a strategy from the result of one phase of a load run, and describes it in a sentence. */
#ifndef OVERSELL_LOADTEST_LOAD_FINDING_H
#define OVERSELL_LOADTEST_LOAD_FINDING_H

#include "loadtest/load/measure.h"

/* Adds the evidence of PHASE to EVIDENCE, whose guarantee and instances are set. FINDING keeps the first sentence that says
 * why the strategy is broken; it is "" before the first phase. Pure. */
void find(const struct phase *phase, const struct subject *subject, struct evidence *evidence,
          char finding[FINDING_MAX]);

#endif
