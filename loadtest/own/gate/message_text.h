/* Builds the line of text that represents a message. Pure. */
#ifndef OVERSELL_LOADTEST_OWN_GATE_MESSAGE_TEXT_H
#define OVERSELL_LOADTEST_OWN_GATE_MESSAGE_TEXT_H

#include "loadtest/own/gate/wire_protocol.h"

/* Appends as much of the COUNT bytes to TEXT as there is room for in MESSAGE_TEXT. White space becomes one blank; what is neither a
 * printable character nor UTF-8 becomes '?', so TEXT can always be printed and written as JSON. */
void message_append(char *text, const char *bytes, size_t count);
void message_append_text(char *text, const char *more);

#endif
