/* QR codes: the drawing has the finder patterns where a reader looks for them, and texts that do not fit are refused. */
#include "tests/unit/unit.h"

#include "service/classroom/qr_code.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { QUIET = 4, MOST = 80 };

/* Reads the drawing back; returns the modules on a side without the quiet zone. */
static int read_back(const char *svg, bool ret_dark[MOST][MOST])
{
    int size = 0, other = 0, x, y, length, back, used;
    assert_int_equal(sscanf(strstr(svg, "viewBox=\""), "viewBox=\"0 0 %d %d\"", &size, &other), 2);
    assert_int_equal(size, other);
    assert_true(size > 2 * QUIET && size < MOST);
    memset(ret_dark, 0, sizeof(bool[MOST][MOST]));
    const char *path = strstr(svg, "d=\"M") + 3;
    for (; sscanf(path, "M%d %dh%dv1h-%dz%n", &x, &y, &length, &back, &used) == 4; path += used) {
        assert_int_equal(length, back);
        assert_true(x >= QUIET && y >= QUIET && x + length <= size - QUIET && y < size - QUIET);
        for (int i = 0; i < length; i++)
            ret_dark[y - QUIET][x - QUIET + i] = true;
    }
    assert_string_equal(path, "\"/></svg>\n");
    return size - 2 * QUIET;
}

/* A ring of 7 x 7 dark modules around 3 x 3, with a light ring between. */
static void check_finder(bool dark[MOST][MOST], int left, int top)
{
    for (int y = 0; y < 7; y++)
        for (int x = 0; x < 7; x++) {
            int dx = abs(x - 3), dy = abs(y - 3), ring = dx > dy ? dx : dy;
            assert_true(dark[top + y][left + x] == (ring != 2));
        }
}

static void test_the_finder_patterns(void **state)
{
    static bool dark[MOST][MOST], other[MOST][MOST];
    char *svg = qr_code_svg("http://192.168.1.17:8080/#join=abcd-2345");
    assert_non_null(svg);
    int size = read_back(svg, dark);
    assert_int_equal((size - 17) % 4, 0); /* a size that the standard has */
    check_finder(dark, 0, 0);
    check_finder(dark, size - 7, 0);
    check_finder(dark, 0, size - 7);
    for (int i = 8; i < size - 8; i++) /* the timing pattern */
        assert_true(dark[6][i] == (i % 2 == 0) && dark[i][6] == (i % 2 == 0));
    free(svg);
    svg = qr_code_svg("http://192.168.1.17:8080/#join=abcd-2346");
    assert_non_null(svg);
    assert_int_equal(read_back(svg, other), size);
    assert_true(memcmp(dark, other, sizeof dark) != 0);
    free(svg);
}

static void test_bounds(void **state)
{
    char text[302];
    memset(text, 'x', sizeof text);
    text[301] = '\0';
    assert_null(qr_code_svg(""));
    assert_null(qr_code_svg(text));
    text[300] = '\0';
    char *svg = qr_code_svg(text);
    assert_non_null(svg);
    free(svg);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_finder_patterns),
        cmocka_unit_test(test_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
