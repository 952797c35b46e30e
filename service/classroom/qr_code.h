/* Draws a text as a QR code. */
#ifndef OVERSELL_SERVICE_CLASSROOM_QR_CODE_H
#define OVERSELL_SERVICE_CLASSROOM_QR_CODE_H

/* Returns TEXT as a QR code in SVG, which the caller frees: black on white, with the margin of four modules that readers need. NULL: TEXT
 * is empty or longer than 300 bytes, or out of memory. Any thread. */
char *qr_code_svg(const char *text);

#endif
