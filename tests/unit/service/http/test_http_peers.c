/* How many connections an address may have: which addresses count as one, and that an end makes room. */
#include "tests/unit/unit.h"

#include "service/http/peers.h"

#include <arpa/inet.h>

/* The address, valid until the next call. */
static const struct sockaddr *peer(const char *text)
{
    static struct sockaddr_storage storage;
    memset(&storage, 0, sizeof storage);
    struct sockaddr_in *v4 = (struct sockaddr_in *)&storage;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&storage;
    if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
    } else {
        assert_int_equal(inet_pton(AF_INET6, text, &v6->sin6_addr), 1);
        v6->sin6_family = AF_INET6;
    }
    return (const struct sockaddr *)&storage;
}

static void test_a_limit_for_each_address(void **state)
{
    struct http_peers *peers = http_peers_new(
        2, 3, (const unsigned[]){[HTTP_CALL_ORDER] = 1, [HTTP_CALL_OTHER] = 2});
    assert_true(http_peers_add(peers, peer("10.0.0.1")));
    assert_true(http_peers_add(peers, peer("10.0.0.1")));
    assert_false(http_peers_add(peers, peer("10.0.0.1")));
    assert_true(http_peers_add(peers, peer("10.0.0.2")));
    http_peers_remove(peers, peer("10.0.0.1")); /* the one that was refused */
    assert_false(http_peers_add(peers, peer("10.0.0.1")));
    http_peers_remove(peers, peer("10.0.0.1"));
    http_peers_remove(peers, peer("10.0.0.1"));
    assert_true(http_peers_add(peers, peer("10.0.0.1")));
    for (int i = 0; i < 3; i++)
        assert_true(http_peers_add(peers, peer("127.0.0.1")));
    assert_false(http_peers_add(peers, peer("127.0.0.1")));
    http_peers_free(peers);
    http_peers_free(NULL);
}

static void test_what_counts_as_one_address(void **state)
{
    struct http_peers *peers = http_peers_new(
        1, 1, (const unsigned[]){[HTTP_CALL_ORDER] = 1, [HTTP_CALL_OTHER] = 2});
    assert_true(http_peers_add(peers, peer("2001:db8::1")));
    assert_false(http_peers_add(peers, peer("2001:db8::ffff:2"))); /* the same /64 */
    assert_true(http_peers_add(peers, peer("2001:db8:0:1::1")));
    assert_true(http_peers_add(peers, peer("10.0.0.1")));
    assert_false(http_peers_add(peers, peer("::ffff:10.0.0.1")));
    assert_true(http_peers_add(peers, peer("::1")));
    assert_false(http_peers_add(peers, peer("::1")));
    assert_true(http_peers_add(peers, peer("127.0.0.1")));
    assert_true(http_peers_add(peers, peer("127.0.0.2")));
    http_peers_free(peers);
}

static void test_names(void **state)
{
    static const char *const names[][2] = {{"10.0.0.1", "10.0.0.1"},
                                           {"::ffff:10.0.0.1", "10.0.0.1"},
                                           {"2001:db8::1:2", "2001:db8::/64"},
                                           {"2001:db8:0:7::2", "2001:db8:0:7::/64"},
                                           {"::1", "::1"},
                                           {"127.0.0.1", "127.0.0.1"}};
    for (size_t i = 0; i < COUNT(names); i++) {
        char name[48];
        http_peers_name(peer(names[i][0]), name, sizeof name);
        assert_string_equal(name, names[i][1]);
    }
}

static void test_no_limit(void **state)
{
    struct http_peers *peers = http_peers_new(
        1, 0, (const unsigned[]){[HTTP_CALL_ORDER] = 1, [HTTP_CALL_OTHER] = 2});
    for (int i = 0; i < 100; i++)
        assert_true(http_peers_add(peers, peer("127.0.0.1")));
    http_peers_remove(peers, peer("127.0.0.1"));
    http_peers_remove(peers, peer("10.0.0.1")); /* never came: nothing happens */
    assert_true(http_peers_add(peers, peer("10.0.0.1")));
    assert_false(http_peers_add(peers, peer("10.0.0.1")));
    http_peers_free(peers);
}

static void test_waiting_calls(void **state)
{
    unsigned earlier;
    struct http_peers *peers = http_peers_new(
        2, 0, (const unsigned[]){[HTTP_CALL_ORDER] = 1, [HTTP_CALL_OTHER] = 2});
    assert_true(http_peers_add(peers, peer("10.0.0.1")));
    assert_true(http_peers_add(peers, peer("10.0.0.1")));
    assert_true(http_peers_add(peers, peer("10.0.0.2")));
    assert_true(http_peers_begin_call(peers, peer("10.0.0.1"), HTTP_CALL_OTHER, &earlier));
    assert_true(http_peers_begin_call(peers, peer("10.0.0.1"), HTTP_CALL_OTHER, &earlier));
    assert_false(http_peers_begin_call(peers, peer("10.0.0.1"), HTTP_CALL_OTHER, &earlier));
    assert_int_equal(earlier, 2);
    assert_true(http_peers_begin_call(peers, peer("10.0.0.2"), HTTP_CALL_OTHER, &earlier));
    assert_int_equal(earlier, 0);
    assert_true(
        http_peers_begin_call(peers, peer("10.0.0.1"), HTTP_CALL_ORDER, &earlier)); /* counted separately */
    assert_false(http_peers_begin_call(peers, peer("10.0.0.1"), HTTP_CALL_ORDER, &earlier));
    assert_int_equal(earlier, 1);
    http_peers_end_call(peers, peer("10.0.0.1"), HTTP_CALL_OTHER);
    assert_true(http_peers_begin_call(peers, peer("10.0.0.1"), HTTP_CALL_OTHER, &earlier));
    assert_false(http_peers_begin_call(peers, peer("10.0.0.1"), HTTP_CALL_OTHER, &earlier));
    http_peers_remove(peers, peer("10.0.0.1")); /* one of its two connections: its calls are still counted */
    assert_false(http_peers_begin_call(peers, peer("10.0.0.1"), HTTP_CALL_OTHER, &earlier));
    assert_true(http_peers_add(peers, peer("127.0.0.1"))); /* has no limit */
    for (int i = 0; i < 10; i++)
        assert_true(http_peers_begin_call(peers, peer("127.0.0.1"), HTTP_CALL_OTHER, &earlier));
    http_peers_end_call(peers, peer("127.0.0.1"), HTTP_CALL_OTHER);
    http_peers_free(peers);
}

static void test_any_number_of_orders(void **state)
{
    unsigned earlier;
    struct http_peers *peers = http_peers_new(
        1, 0, (const unsigned[]){[HTTP_CALL_ORDER] = 0, [HTTP_CALL_OTHER] = 1});
    assert_true(http_peers_limits(peers, peer("10.0.0.1")));
    assert_false(http_peers_limits(peers, peer("127.0.0.1")));
    assert_true(http_peers_add(peers, peer("10.0.0.1")));
    for (int i = 0; i < 10; i++)
        assert_true(http_peers_begin_call(peers, peer("10.0.0.1"), HTTP_CALL_ORDER, &earlier));
    http_peers_remove(peers, peer("10.0.0.1"));
    http_peers_free(peers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_limit_for_each_address),
        cmocka_unit_test(test_what_counts_as_one_address),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_no_limit),
        cmocka_unit_test(test_waiting_calls),
        cmocka_unit_test(test_any_number_of_orders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
