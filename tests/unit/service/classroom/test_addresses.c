/* The address for learners: that of the teacher's page if others can reach it, else that of a network interface, else none. */
#include "tests/unit/unit.h"

#include "service/classroom/addresses.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct config listening_at(const char *address)
{
    struct config config = {0};
    struct sockaddr_in *four = (struct sockaddr_in *)(void *)&config.address;
    four->sin_family = AF_INET;
    assert_int_equal(inet_pton(AF_INET, address, &four->sin_addr), 1);
    return config;
}

static void assert_page(const struct page_address *page, const char *expected)
{
    struct config config = listening_at("127.0.0.1");
    char url[64];
    assert_int_equal(address_for_learners(&config, 8080, page, true, url, sizeof url), ADDRESS_OF_PAGE);
    assert_string_equal(url, expected);
}

static void test_the_page_s_own_address_comes_first(void **state)
{
    assert_page(&(struct page_address){.host = "192.0.2.7:8080"}, "http://192.0.2.7:8080");
    assert_page(&(struct page_address){.host = "shop.example", .scheme = "https"}, "https://shop.example");
    assert_page(&(struct page_address){.host = "shop.example", .scheme = "HTTPS, http"},
                "https://shop.example");
    assert_page(&(struct page_address){.host = "shop.example", .scheme = "http, https"},
                "http://shop.example");
    assert_page(&(struct page_address){.host = "127.0.0.1:8080", .origin = "https://shop.example"},
                "https://shop.example");
    assert_page(
        &(struct page_address){.host = "10.0.0.2", .scheme = "http", .origin = "https://[2001:db8::1]:8443"},
        "https://[2001:db8::1]:8443");
}

static void test_a_page_on_the_teacher_s_machine_has_no_address_for_others(void **state)
{
    static const struct page_address pages[] = {
        {0},
        {.host = "localhost:8080"},
        {.host = "127.0.0.1"},
        {.host = "0.0.0.0:8080"},
        {.host = "192.0.2.7", .origin = "http://localhost:8080"},
        {.host = "a-name-that-is-too-long-for-the-place-that-the-caller-has-given-it.example"},
    };
    struct config loopback = listening_at("127.0.0.1"), one = listening_at("192.0.2.7");
    for (size_t i = 0; i < COUNT(pages); i++) {
        char url[64] = "?";
        assert_int_equal(address_for_learners(&loopback, 8080, &pages[i], false, url, sizeof url),
                         ADDRESS_LOOPBACK);
        assert_string_equal(url, "");
        assert_int_equal(address_for_learners(&loopback, 8080, &pages[i], true, url, sizeof url),
                         ADDRESS_LOOPBACK);
        assert_int_equal(address_for_learners(&one, 8080, &pages[i], false, url, sizeof url),
                         ADDRESS_OF_INTERFACE);
        assert_string_equal(url, "http://192.0.2.7:8080");
        assert_int_equal(address_for_learners(&one, 8080, &pages[i], true, url, sizeof url),
                         ADDRESS_OF_CONTAINER);
        assert_string_equal(url, "");
    }
}

static void test_a_container_is_known_by_its_variables(void **state)
{
    unsetenv("KUBERNETES_SERVICE_HOST");
    setenv("container", "oci", 1);
    assert_true(is_in_container());
    setenv("container", "", 1);
    bool by_files = is_in_container(); /* where these tests run */
    setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1", 1);
    assert_true(is_in_container());
    unsetenv("KUBERNETES_SERVICE_HOST");
    unsetenv("container");
    assert_true(is_in_container() == by_files);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_page_s_own_address_comes_first),
        cmocka_unit_test(test_a_page_on_the_teacher_s_machine_has_no_address_for_others),
        cmocka_unit_test(test_a_container_is_known_by_its_variables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
