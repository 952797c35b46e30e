/* Checks the Host header of a call against the names that the service accepts. This prevents DNS rebinding, where a
 * foreign page makes its own name resolve to this machine: its calls have that name in the Host header. */
#ifndef OVERSELL_SERVICE_HTTP_HOST_NAME_H
#define OVERSELL_SERVICE_HTTP_HOST_NAME_H

#include <stdbool.h>

/* Does the service accept HOST, the value of a Host header? It accepts every numeric address, localhost, this machine's
 * own name, and the names in ALLOWED, separated by commas ("" for none). Any thread. */
bool host_is_allowed(const char *host, const char *allowed);

/* Is TEXT a list of names for ALLOWED: letters, digits, "-" and ".", separated by commas? */
bool host_names_are_valid(const char *text);

#endif
