/* Where servers can load a library from: who may enter a folder, and a copy where the servers' users may not. */
#include "tests/unit/unit.h"

#include "loadtest/testbed/preload.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEXT "not really a library"

/* A folder with an open one and a private one, and a library in the private one. */
struct tree {
    char root[64], open[96], closed[96], below[128], library[160], copy[160];
};

static int make_tree(void **state)
{
    static struct tree tree;
    strcpy(tree.root, "/tmp/oversell-preload-XXXXXX");
    if (!mkdtemp(tree.root) || chmod(tree.root, 0755) != 0)
        return -1;
    snprintf(tree.open, sizeof tree.open, "%s/open", tree.root);
    snprintf(tree.closed, sizeof tree.closed, "%s/closed", tree.root);
    snprintf(tree.below, sizeof tree.below, "%s/below", tree.closed);
    snprintf(tree.library, sizeof tree.library, "%s/some-shim.so", tree.below);
    snprintf(tree.copy, sizeof tree.copy, "%s/some-shim.so", tree.open);
    if (mkdir(tree.open, 0755) != 0 || mkdir(tree.closed, 0700) != 0 || mkdir(tree.below, 0755) != 0)
        return -1;
    FILE *file = fopen(tree.library, "we");
    bool written = file && fputs(TEXT, file) >= 0;
    if (file && fclose(file) != 0)
        written = false;
    *state = &tree;
    return written ? 0 : -1;
}

static int remove_tree(void **state)
{
    struct tree *tree = *state;
    (void)unlink(tree->library);
    (void)unlink(tree->copy);
    return rmdir(tree->below) | rmdir(tree->closed) | rmdir(tree->open) | rmdir(tree->root);
}

static void a_folder_is_closed_where_one_above_it_is(void **state)
{
    const struct tree *tree = *state;
    assert_true(others_can_enter("/"));
    assert_true(others_can_enter(tree->open));
    assert_false(others_can_enter(tree->closed));
    assert_false(others_can_enter(tree->below));
    assert_false(others_can_enter("/nowhere/at/all"));
    char link[160];
    snprintf(link, sizeof link, "%s/link", tree->root);
    assert_int_equal(symlink(tree->below, link), 0);
    bool entered = others_can_enter(link); /* by where it leads to */
    assert_int_equal(unlink(link), 0);
    assert_false(entered);
}

static void a_library_that_others_cannot_read_is_copied_once(void **state)
{
    const struct tree *tree = *state;
    char path[PATH_MAX], reason[256], text[64] = "";
    for (int i = 0; i < 2; i++)
        assert_true(preload_place(tree->library, tree->open, path, reason, sizeof reason));
    if (geteuid() != 0) { /* the servers run as we do */
        assert_string_equal(path, tree->library);
        return;
    }
    assert_string_equal(path, tree->copy);
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0644);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    bool was_read = fgets(text, sizeof text, file) != NULL;
    fclose(file);
    assert_true(was_read);
    assert_string_equal(text, TEXT);
}

static void a_library_that_others_can_read_stays_where_it_is(void **state)
{
    const struct tree *tree = *state;
    char path[PATH_MAX], reason[256];
    assert_int_equal(chmod(tree->closed, 0755), 0);
    bool placed = preload_place(tree->library, tree->open, path, reason, sizeof reason);
    assert_int_equal(chmod(tree->closed, 0700), 0);
    assert_true(placed);
    assert_string_equal(path, tree->library);
    assert_int_not_equal(access(tree->copy, F_OK), 0);
}

static void a_copy_that_cannot_be_made_has_a_reason(void **state)
{
    const struct tree *tree = *state;
    char path[PATH_MAX], reason[256] = "";
    if (geteuid() != 0)
        return;
    assert_false(preload_place(tree->library, "/nowhere/at/all", path, reason, sizeof reason));
    assert_non_null(strstr(reason, "No such file or directory"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_folder_is_closed_where_one_above_it_is, make_tree, remove_tree),
        cmocka_unit_test_setup_teardown(a_library_that_others_cannot_read_is_copied_once, make_tree,
                                        remove_tree),
        cmocka_unit_test_setup_teardown(a_library_that_others_can_read_stays_where_it_is, make_tree,
                                        remove_tree),
        cmocka_unit_test_setup_teardown(a_copy_that_cannot_be_made_has_a_reason, make_tree, remove_tree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
