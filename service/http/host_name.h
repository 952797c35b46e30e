/* Checks the Host header of a call against the names that the service accepts. This prevents DNS rebinding, where a
 * foreign page makes its own name resolve to this machine: its calls have that name in the Host header. */
#ifndef OVERSELL_SERVICE_HTTP_HOST_NAME_H
#define OVERSELL_SERVICE_HTTP_HOST_NAME_H

#include <stdbool.h>

/* Does the service accept HOST, the value of a Host header? It accepts every numeric address, localhost, this machine's
 * own name, and the names in ALLOWED, separated by commas ("" for none). Any thread. */
bool host_is_allowed(const char *host, const char *allowed);

/* Has HOST the form of the value of a Host header: NAME, NAME:PORT, a numeric address, or [ADDRESS]:PORT? Any thread. */
bool host_is_well_formed(const char *host);

/* Does HOST, the value of a Host header, lead back to the machine of the caller? So do the loopback addresses, localhost and the names
 * below it (RFC 6761), and the address of all interfaces, which browsers accept. False if HOST has no valid form. Any thread. */
bool host_is_loopback(const char *host);

/* Is TEXT a list of names for ALLOWED: letters, digits, "-" and ".", separated by commas? */
bool host_names_are_valid(const char *text);

#endif
