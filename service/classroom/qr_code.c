/* Draws a text as a QR code in SVG; libqrencode computes the modules. */
#include "service/classroom/qr_code.h"

#include <qrencode.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_MOST = 300, QUIET = 4 /* modules, as the standard demands */ };

static bool is_dark(const QRcode *code, int x, int y)
{
    return code->data[y * code->width + x] & 1;
}

/* One horizontal bar for each run of dark modules. */
static void draw(FILE *svg, const QRcode *code)
{
    int size = code->width + 2 * QUIET;
    fprintf(svg,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" shape-rendering=\"crispEdges\">"
            "<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/><path fill=\"#000\" d=\"",
            size, size, size, size);
    for (int y = 0; y < code->width; y++)
        for (int x = 0; x < code->width; x++) {
            int begin = x;
            while (x < code->width && is_dark(code, x, y))
                x++;
            if (x > begin)
                fprintf(svg, "M%d %dh%dv1h-%dz", begin + QUIET, y + QUIET, x - begin, x - begin);
        }
    fputs("\"/></svg>\n", svg);
}

char *qr_code_svg(const char *text)
{
    char *text_of_svg = NULL;
    size_t size;
    if (!text[0] || strlen(text) > TEXT_MOST)
        return NULL;
    QRcode *code = QRcode_encodeString(text, 0, QR_ECLEVEL_M, QR_MODE_8, 1);
    if (!code)
        return NULL;
    FILE *svg = open_memstream(&text_of_svg, &size);
    bool drawn = false;
    if (svg) {
        draw(svg, code);
        drawn = !ferror(svg);
        drawn = fclose(svg) == 0 && drawn;
    }
    QRcode_free(code);
    if (drawn)
        return text_of_svg;
    free(text_of_svg);
    return NULL;
}
