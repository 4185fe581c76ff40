/* The memory limit: the least of what control groups, a process's own limits and the machine
 * allow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/config.h"

/* A root folder with files in it, removed again by tree_remove(). */
struct tree {
    char root[32];
    const char *const *folder; /* parents first; NULL ends */
    const char *const (*file)[2];
};

static void tree_make(struct tree *tree)
{
    char path[256];
    strcpy(tree->root, "/tmp/dotd-tree-XXXXXX");
    assert_non_null(mkdtemp(tree->root));
    for (size_t i = 0; tree->folder[i] != NULL; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", tree->root, tree->folder[i]);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    for (size_t i = 0; tree->file[i][0] != NULL; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", tree->root, tree->file[i][0]);
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        assert_true(fputs(tree->file[i][1], file) >= 0);
        assert_int_equal(fclose(file), 0);
    }
}

static void tree_remove(struct tree *tree)
{
    char path[256];
    size_t folders = 0;
    for (size_t i = 0; tree->file[i][0] != NULL; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", tree->root, tree->file[i][0]);
        assert_int_equal(unlink(path), 0);
    }
    while (tree->folder[folders] != NULL)
        folders++;
    while (folders > 0) {
        (void)snprintf(path, sizeof path, "%s/%s", tree->root, tree->folder[--folders]);
        assert_int_equal(rmdir(path), 0);
    }
    assert_int_equal(rmdir(tree->root), 0);
}

static void assert_memory_limit(const char *const *folder, const char *const (*file)[2],
                                uint64_t limit)
{
    struct tree tree = {.folder = folder, .file = file};
    tree_make(&tree);
    uint64_t got = config_memory_limit_under(tree.root);
    tree_remove(&tree);
    assert_int_equal(got, limit);
}

static const char *const folders[] = {"proc",
                                      "proc/self",
                                      "sys",
                                      "sys/fs",
                                      "sys/fs/cgroup",
                                      "sys/fs/cgroup/a",
                                      "sys/fs/cgroup/a/b",
                                      "sys/fs/cgroup/memory",
                                      "sys/fs/cgroup/memory/c",
                                      NULL};

#define MEMINFO                                                     \
    {                                                               \
        "proc/meminfo", "MemFree:  5 kB\nMemTotal:       1000 kB\n" \
    }

static void memory_limit_is_the_least_of_the_groups_above(void **state)
{
    (void)state;
    assert_memory_limit(folders,
                        (const char *const[][2]){MEMINFO,
                                                 {"proc/self/cgroup", "0::/a/b\n"},
                                                 {"sys/fs/cgroup/a/memory.max", "65536\n"},
                                                 {"sys/fs/cgroup/a/b/memory.max", "max\n"},
                                                 {NULL}},
                        65536);
    assert_memory_limit(folders,
                        (const char *const[][2]){MEMINFO,
                                                 {"proc/self/cgroup", "0::/a/b\n"},
                                                 {"sys/fs/cgroup/a/memory.max", "65536\n"},
                                                 {"sys/fs/cgroup/a/b/memory.max", "4096\n"},
                                                 {NULL}},
                        4096);
}

static void memory_limit_reads_version_1(void **state)
{
    (void)state;
    assert_memory_limit(folders,
                        (const char *const[][2]){
                            MEMINFO,
                            {"proc/self/cgroup", "5:cpu:/\n4:hugetlb,memory:/c\n0::/\n"},
                            {"sys/fs/cgroup/memory/c/memory.limit_in_bytes", "8192\n"},
                            {"sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"},
                            {NULL}},
                        8192);
}

static void memory_limit_of_a_container_is_at_its_mount(void **state)
{
    (void)state;
    assert_memory_limit(folders,
                        (const char *const[][2]){MEMINFO,
                                                 {"proc/self/cgroup", "0::/not/mounted/here\n"},
                                                 {"sys/fs/cgroup/memory.max", "12288\n"},
                                                 {NULL}},
                        12288);
}

static void memory_limit_without_groups_is_the_machine(void **state)
{
    (void)state;
    assert_memory_limit(folders, (const char *const[][2]){MEMINFO, {NULL}}, 1000 << 10);
    assert_memory_limit(folders,
                        (const char *const[][2]){MEMINFO,
                                                 {"proc/self/cgroup", "0::/a\n"},
                                                 {"sys/fs/cgroup/a/memory.max", "max\n"},
                                                 {NULL}},
                        1000 << 10);
}

#define LIMITS(data, space)                                                                 \
    {                                                                                       \
        "proc/self/limits", "Limit                     Soft Limit   Hard Limit   Units\n"   \
                            "Max cpu time              1            unlimited    seconds\n" \
                            "Max data size             " data "     unlimited    bytes\n"   \
                            "Max resident set          2            unlimited    bytes\n"   \
                            "Max address space         " space "    unlimited    bytes\n"   \
    }

static void memory_limit_is_the_least_of_the_processs_own(void **state)
{
    (void)state;
    static const char *const group[2] = {"proc/self/cgroup", "0::/a\n"};
    assert_memory_limit(
        folders, (const char *const[][2]){MEMINFO, LIMITS("70000", "unlimited"), {NULL}}, 70000);
    assert_memory_limit(folders,
                        (const char *const[][2]){MEMINFO, LIMITS("70000", "65536"), {NULL}}, 65536);
    assert_memory_limit(folders,
                        (const char *const[][2]){MEMINFO, LIMITS("unlimited", "99999999"), {NULL}},
                        1000 << 10);
    assert_memory_limit(folders,
                        (const char *const[][2]){MEMINFO,
                                                 LIMITS("unlimited", "65536"),
                                                 {group[0], group[1]},
                                                 {"sys/fs/cgroup/a/memory.max", "4096\n"},
                                                 {NULL}},
                        4096);
}

static void memory_limit_is_known_without_proc(void **state)
{
    (void)state;
    static const char *const none[] = {"sys", NULL};
    struct tree tree = {.folder = none, .file = (const char *const[][2]){{NULL}}};
    tree_make(&tree);
    uint64_t got = config_memory_limit_under(tree.root);
    tree_remove(&tree);
    assert_in_range(got, 1 << 20, UINT64_C(1) << 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_limit_is_the_least_of_the_groups_above),
        cmocka_unit_test(memory_limit_reads_version_1),
        cmocka_unit_test(memory_limit_of_a_container_is_at_its_mount),
        cmocka_unit_test(memory_limit_without_groups_is_the_machine),
        cmocka_unit_test(memory_limit_is_the_least_of_the_processs_own),
        cmocka_unit_test(memory_limit_is_known_without_proc),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
