/* Takes care of processes that have left the process group of the child that started them, such as daemons: while it lasts, this process
 * becomes their parent when theirs ends (PR_SET_CHILD_SUBREAPER), and at the end it stops them. One thread; one adoption at a time. */
#ifndef OVERSELL_LOADTEST_PROCESS_ADOPTION_H
#define OVERSELL_LOADTEST_PROCESS_ADOPTION_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { ADOPTION_KNOWN = 256 };

struct adoption {
    pid_t known[ADOPTION_KNOWN]; /* the children that this process had before */
    size_t count;
};

/* Begins. Children that exist now are left alone. */
void adoption_begin(struct adoption *ret_adoption);
/* Stops all other children and what they have started: SIGTERM, and after GRACE_MS SIGKILL. Ends within GRACE_MS and some seconds. */
void adoption_end(const struct adoption *adoption, int64_t grace_ms);

#endif
