/* Redis addresses: what is understood, what is refused, and that no refusal tells the password. */
#include "tests/unit/unit.h"

#include "lock/redis/client/url.h"

#include <stdio.h>
#include <stdlib.h>

static const struct {
    const char *url;
    const char *place;
    const char *user, *password; /* NULL: "" */
    int database;
    bool tls;
} cases[] = {
    {"redis://", "localhost:6379", NULL, NULL, 0, false},
    {"redis://h", "h:6379", NULL, NULL, 0, false},
    {"redis://h/", "h:6379", NULL, NULL, 0, false},
    {"redis://h:1", "h:1", NULL, NULL, 0, false},
    {"redis://h:65535/15", "h:65535", NULL, NULL, 15, false},
    {"redis://:7000/3", "localhost:7000", NULL, NULL, 3, false},
    {"redis://127.0.0.1:6380", "127.0.0.1:6380", NULL, NULL, 0, false},
    {"redis://[::1]", "[::1]:6379", NULL, NULL, 0, false},
    {"redis://[fe80::1%25eth0]:7000/2", "[fe80::1%eth0]:7000", NULL, NULL, 2, false},
    {"redis://:secret@h", "h:6379", NULL, "secret", 0, false},
    {"redis://me:secret@h:1/2", "h:1", "me", "secret", 2, false},
    {"redis://me:@h", "h:6379", "me", NULL, 0, false},
    {"redis://:@h", "h:6379", NULL, NULL, 0, false},
    {"redis://:a:b@h", "h:6379", NULL, "a:b", 0, false},
    {"redis://:p%40ss%20w%2Fx%3f@h", "h:6379", NULL, "p@ss w/x?", 0, false},
    {"redis://m%3ae:%25%c3%B6@h", "h:6379", "m:e", "%\xc3\xb6", 0, false},
    {"rediss://:x@h:1/2", "h:1", NULL, "x", 2, true},
    {"unix:///run/redis.sock", "/run/redis.sock", NULL, NULL, 0, false},
    {"unix:///run/a%20b.sock?db=7", "/run/a b.sock", NULL, NULL, 7, false},
    {"unix://:x@/r", "/r", NULL, "x", 0, false},
    {"unix://me:x%40@/r@s:t?db=0", "/r@s:t", "me", "x@", 0, false},
    /* refused: no place */
    {"", NULL, NULL, NULL, 0, false},
    {"redis", NULL, NULL, NULL, 0, false},
    {"redis:/h", NULL, NULL, NULL, 0, false},
    {"REDIS://h", NULL, NULL, NULL, 0, false},
    {"http://h", NULL, NULL, NULL, 0, false},
    {" redis://h", NULL, NULL, NULL, 0, false},
    {"redis://h ", NULL, NULL, NULL, 0, false},
    {"redis://h\n", NULL, NULL, NULL, 0, false},
    {"redis://secret@h", NULL, NULL, NULL, 0, false},
    {"redis://:sec ret@h", NULL, NULL, NULL, 0, false},
    {"redis://:secret%@h", NULL, NULL, NULL, 0, false},
    {"redis://:secret%4@h", NULL, NULL, NULL, 0, false},
    {"redis://:secret%4g@h", NULL, NULL, NULL, 0, false},
    {"redis://:secret%00@h", NULL, NULL, NULL, 0, false},
    {"redis://:secret@h:", NULL, NULL, NULL, 0, false},
    {"redis://:secret@h:0", NULL, NULL, NULL, 0, false},
    {"redis://:secret@h:65536", NULL, NULL, NULL, 0, false},
    {"redis://:secret@h:99999999999999999999", NULL, NULL, NULL, 0, false},
    {"redis://:secret@h:+1", NULL, NULL, NULL, 0, false},
    {"redis://:secret@h:1x", NULL, NULL, NULL, 0, false},
    {"redis://:secret@h/x", NULL, NULL, NULL, 0, false},
    {"redis://:secret@h/-1", NULL, NULL, NULL, 0, false},
    {"redis://:secret@h/1/", NULL, NULL, NULL, 0, false},
    {"redis://:secret@h/99999999999", NULL, NULL, NULL, 0, false},
    {"redis://:secret@h?db=1", NULL, NULL, NULL, 0, false},
    {"redis://[::1", NULL, NULL, NULL, 0, false},
    {"redis://[::1]x", NULL, NULL, NULL, 0, false},
    {"redis://::1", NULL, NULL, NULL, 0, false},
    {"unix://", NULL, NULL, NULL, 0, false},
    {"unix://r.sock", NULL, NULL, NULL, 0, false},
    {"unix://secret@/r.sock", NULL, NULL, NULL, 0, false},
    {"unix://:secret@/r?db=", NULL, NULL, NULL, 0, false},
    {"unix://:secret@/r?db=x", NULL, NULL, NULL, 0, false},
    {"unix://:secret@/r?d=1", NULL, NULL, NULL, 0, false},
    {"unix://:secret@/r?db=1&x=2", NULL, NULL, NULL, 0, false},
};

/* Read from memory that ends with the URL, so that the sanitizers see whoever reads on. */
static bool read_exactly(const char *url, size_t size, struct redis_url *ret_url, const char **ret_error)
{
    char *copy = malloc(size + !size);
    assert_non_null(copy);
    memcpy(copy, url, size);
    bool ok = redis_url_read(copy, size, ret_url, ret_error);
    free(copy);
    return ok;
}

static void reads_addresses(void **state)
{
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct redis_url url;
        const char *error = NULL;
        memset(&url, 0x55, sizeof url);
        bool ok = read_exactly(cases[i].url, strlen(cases[i].url), &url, &error);
        if (ok != (cases[i].place != NULL))
            fail_msg("\"%s\" is %s: %s", cases[i].url, ok ? "understood" : "refused", error);
        if (!ok) {
            assert_non_null(error);
            assert_null(strstr(error, "secret"));
            assert_int_equal(url.database, 0x55555555); /* untouched */
            continue;
        }
        assert_string_equal(url.place, cases[i].place);
        assert_string_equal(url.user, cases[i].user ? cases[i].user : "");
        assert_string_equal(url.password, cases[i].password ? cases[i].password : "");
        assert_int_equal(url.database, cases[i].database);
        assert_int_equal(url.tls, cases[i].tls);
        assert_int_equal(*url.path != '\0', strncmp(cases[i].url, "unix:", 5) == 0);
    }
}

/* Of a list of addresses each is read by its length; what stands behind does not count. */
static void reads_no_further_than_told(void **state)
{
    struct redis_url url;
    const char *error;
    assert_true(redis_url_read("redis://a:1,redis://b:2", 11, &url, &error));
    assert_string_equal(url.place, "a:1");
    assert_true(redis_url_read("redis://:x%41", 8, &url, &error));
    assert_string_equal(url.place, "localhost:6379");
    assert_false(redis_url_read("redis://:x%41@h", 12, &url, &error));
}

/* The longest of each part fits; one byte more is refused, not cut off. */
static void bounds_every_part(void **state)
{
    static const struct {
        const char *before, *behind;
        int longest;
    } parts[] = {
        {"redis://", "", 255},
        {"redis://", ":x@h", 127},
        {"redis://:", "@h", 511},
        {"unix:///", "", 106},
    };
    for (size_t i = 0; i < COUNT(parts); i++) {
        for (int more = 0; more <= 1; more++) {
            char part[600], text[700];
            struct redis_url url;
            const char *error = NULL;
            memset(part, 'a', sizeof part);
            part[parts[i].longest + more] = '\0';
            int length = snprintf(text, sizeof text, "%s%s%s", parts[i].before, part, parts[i].behind);
            assert_int_equal(read_exactly(text, (size_t)length, &url, &error), !more);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_addresses),
        cmocka_unit_test(reads_no_further_than_told),
        cmocka_unit_test(bounds_every_part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
