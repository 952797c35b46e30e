/* Draws a text as a QR code. */
#ifndef OVERSELL_SERVICE_CLASSROOM_QR_CODE_H
#define OVERSELL_SERVICE_CLASSROOM_QR_CODE_H

/* TEXT as a QR code in SVG, black on white with the quiet zone of four modules that readers need. The caller frees it. NULL: TEXT is
 * empty or longer than 300 bytes, or memory is out. Any thread. */
char *qr_code_svg(const char *text);

#endif
