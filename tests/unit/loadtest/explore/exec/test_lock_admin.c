/* How the explorer ends a grant from outside: by what the lock's own row says, so that a new lock needs no change here. */
#include "tests/unit/unit.h"

#include "loadtest/explore/exec/lock_admin.h"
#include "lock/lock_driver.h"
#include "lock/registry.h"

static const struct lock_hold HELD = {.grant = {.token = "4711/99"}, .has_grant = true};

/* A lock with the same cells as another is treated as that one, under whatever name. */
static void test_a_lock_that_ends_with_its_session(void **state)
{
    struct lock_driver other = lock_row;
    struct lock *admin;
    char pid[16];
    other.name = "another-row";
    assert_string_equal(lock_admin_session(&other, &HELD, pid), "4711");
    assert_true(lock_admin_can_expire(&other));
    assert_int_equal(lock_admin_open(&other, &admin), LOCK_OK);
    assert_null(admin); /* no handle can do it */
    assert_string_equal(lock_admin_session(&etcd_cas, &HELD, pid), "");
}

static void test_a_lock_whose_handles_know_only_their_own_grants(void **state)
{
    struct lock_driver other = curator;
    struct lock *admin;
    other.name = "another-curator";
    lock_configure(&(const struct lock_config){.zookeeper_connect = "127.0.0.1:1", .prefix = "oversell"});
    assert_int_equal(lock_admin_open(&other, &admin), LOCK_OK);
    assert_ptr_equal(admin->driver, &zookeeper_queue);
    lock_close(admin);
}

/* Where neither a renewal nor anything else is said, a release ends the grant: there is always a function to call. */
static void test_every_lock_on_a_server_can_be_ended(void **state)
{
    const struct lock_hold nothing = {0};
    char pid[16];
    for (size_t i = 0; all_locks[i]; i++) {
        const struct lock_driver *driver = all_locks[i];
        if (!driver->server)
            assert_false(lock_admin_can_expire(driver));
        else if (driver->properties.carrier == CARRIER_LEASE || driver->properties.survives_crash)
            assert_true(lock_admin_can_expire(driver));
        assert_string_equal(lock_admin_session(driver, &nothing, pid), "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_lock_that_ends_with_its_session),
        cmocka_unit_test(test_a_lock_whose_handles_know_only_their_own_grants),
        cmocka_unit_test(test_every_lock_on_a_server_can_be_ended),
    };
    return cmocka_run_group_tests_name("lock admin", tests, NULL, NULL);
}
