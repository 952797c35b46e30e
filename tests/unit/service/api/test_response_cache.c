/* The cache of response texts: a text that was made before its cause changed is not kept. */
#include "tests/unit/unit.h"

#include "service/api/response_cache.h"

#include <stdio.h>
#include <stdlib.h>

enum { HOUR_US = 90000000 }; /* a cost that keeps a text for an hour */

static void assert_cached(struct response_cache *cache, const char *key, const char *expected)
{
    char *text = response_cache_get(cache, key);
    if (expected)
        assert_string_equal(text, expected);
    else
        assert_null(text);
    free(text);
}

static void put(struct response_cache *cache, const char *key, const char *text)
{
    response_cache_put(cache, key, text, HOUR_US, response_cache_generation(cache));
}

static void test_a_text_is_kept_until_it_is_forgotten(void **state)
{
    struct response_cache *cache = response_cache_new();
    assert_cached(cache, "audit 1", NULL);
    put(cache, "audit 1", "old");
    put(cache, "audit 2", "other");
    assert_cached(cache, "audit 1", "old");
    response_cache_forget(cache, "audit 1");
    assert_cached(cache, "audit 1", NULL);
    assert_cached(cache, "audit 2", "other");
    put(cache, "audit 1", "new");
    assert_cached(cache, "audit 1", "new");
    response_cache_free(cache);
}

/* A page's audit began before the reset of its product, and ended after it. */
static void test_a_text_from_before_a_reset_is_not_kept(void **state)
{
    struct response_cache *cache = response_cache_new();
    uint64_t generation = response_cache_generation(cache);
    response_cache_forget(cache, "audit 1");
    response_cache_put(cache, "audit 1", "before the reset", HOUR_US, generation);
    assert_cached(cache, "audit 1", NULL);
    put(cache, "audit 1", "after the reset");
    response_cache_put(cache, "audit 1", "before the reset", HOUR_US, generation);
    assert_cached(cache, "audit 1", "after the reset");
    response_cache_free(cache);
}

static void test_a_full_cache_drops_a_text(void **state)
{
    struct response_cache *cache = response_cache_new();
    for (int i = 0; i < 100; i++) {
        char key[24];
        snprintf(key, sizeof key, "audit %d", i);
        put(cache, key, key);
        assert_cached(cache, key, key);
    }
    response_cache_free(cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_text_is_kept_until_it_is_forgotten),
        cmocka_unit_test(test_a_text_from_before_a_reset_is_not_kept),
        cmocka_unit_test(test_a_full_cache_drops_a_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
