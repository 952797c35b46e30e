/* Error texts in buffers, the hash of a text, and its characters in UTF-8. */
#ifndef OVERSELL_BASE_TEXT_H
#define OVERSELL_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Writes a message to RET_ERROR (SIZE bytes; cut off if it is longer). Returns false, for a function that fails to return. Any
 * thread. */
__attribute__((format(printf, 3, 4))) bool text_fail(char *ret_error, size_t size, const char *format, ...);

/* The FNV-1a hash of a text: always the same. Any thread. */
uint32_t text_hash(const char *text);

/* Does TEXT end with END and have something before it, as a file's name has before its suffix? Any thread. */
bool text_ends_with(const char *text, const char *end);

/* The code point of the character at TEXT, and in *ret_length its length in bytes; 0 bytes if TEXT has no valid UTF-8 there. Any
 * thread. */
uint32_t text_code_point(const char *text, size_t *ret_length);

/* Removes the bytes that are not a part of a character in UTF-8 from TEXT. A text that a size or "%.80s" has cut can end within a
 * character, and JSON refuses such a text. Any thread. */
void text_mend(char *text);

/* Is this code point a control character, or one that has no width, changes the direction of the text after it, or begins a new line?
 * Such a character can hide or move other text in a terminal and on a page. Any thread. */
bool text_is_control(uint32_t point);

#endif
