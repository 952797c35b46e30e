/* Which names the service answers to. A page whose own name was made to resolve to this machine (DNS rebinding) comes with
 * that name in its Host header; a name that the service does not know is refused. */
#ifndef OVERSELL_SERVICE_HOST_NAME_H
#define OVERSELL_SERVICE_HOST_NAME_H

#include <stdbool.h>

/* Is HOST, the value of a Host header, one that the service answers to? These are: every numeric address, localhost, this
 * machine's own name, and the names in ALLOWED, which are separated by commas ("" for none). Any thread. */
bool host_is_allowed(const char *host, const char *allowed);

/* Is TEXT a list of names for ALLOWED: letters, digits, "-" and ".", separated by commas? */
bool host_names_are_valid(const char *text);

#endif
