/* Makes secrets that a person can read out, and compares secrets without revealing their characters by the time that it takes. */
#ifndef OVERSELL_BASE_SECRET_H
#define OVERSELL_BASE_SECRET_H

#include <stdbool.h>
#include <stddef.h>

/* Writes LENGTH random characters and a NUL to RET_SECRET. The characters (31 lower-case letters and digits) cannot be
 * mistaken for each other. Ends the process if the kernel has no random bytes. Any thread. */
void make_secret(char *ret_secret, size_t length);

/* Is GIVEN the secret? Both end with a NUL. The time depends on the two lengths alone, not on which characters are right: a
 * caller can measure how long the secret is, but no character of it. Every comparison of a token, a class code or another
 * secret calls this function (make lint-includes). Any thread. */
bool same_secret(const char *given, const char *secret);

#endif
