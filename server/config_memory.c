/* config_memory.c - how much memory this process may use (config_memory_limit() of config.h).
 *
 * Source: Linux, admin-guide/cgroup-v2, memory.max; cgroup-v1/memory, memory.limit_in_bytes;
 * filesystems/proc, /proc/PID/limits; getrlimit(2), RLIMIT_AS and RLIMIT_DATA.
 */
#include "server/config.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/sysinfo.h>

static uint64_t lesser(uint64_t x, uint64_t y)
{
    return x < y ? x : y;
}

/* The number that a file holds, or UINT64_MAX: no such file, or "max". */
static uint64_t file_number(const char *path)
{
    uint64_t number;
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return UINT64_MAX;
    if (fscanf(file, "%" SCNu64, &number) != 1)
        number = UINT64_MAX;
    (void)fclose(file);
    return number;
}

/* The least limit of a group and all groups above it. A container often sees its group's path as
 * the host names it while only its own part is mounted: folders that are not there limit
 * nothing. */
static uint64_t group_limit(const char *root, const char *mount, const char *group,
                            const char *name)
{
    char path[PATH_MAX], folder[PATH_MAX];
    uint64_t least = UINT64_MAX;
    (void)snprintf(folder, sizeof folder, "%s", strstr(group, "/..") == NULL ? group : "");
    for (;;) {
        int length = snprintf(path, sizeof path, "%s%s%s/%s", root, mount, folder, name);
        least = lesser(least, length < PATH_MAX ? file_number(path) : UINT64_MAX);
        char *last = strrchr(folder, '/');
        if (last == NULL)
            return least;
        *last = '\0';
    }
}

/* True when name is one of the comma-separated controllers. */
static bool has_controller(const char *controllers, const char *name)
{
    size_t length = strlen(name);
    while (*controllers != '\0') {
        size_t span = strcspn(controllers, ",");
        if (span == length && memcmp(controllers, name, span) == 0)
            return true;
        controllers += span + (controllers[span] == ',');
    }
    return false;
}

/* One line of /proc/self/cgroup, "ID:CONTROLLERS:GROUP"; version 2 has ID 0 and no controllers. */
static uint64_t line_limit(const char *root, char *line)
{
    line[strcspn(line, "\n")] = '\0';
    char *controllers = strchr(line, ':');
    char *group = controllers == NULL ? NULL : strchr(controllers + 1, ':');
    if (group == NULL)
        return UINT64_MAX;
    *controllers++ = '\0';
    *group++ = '\0';
    if (has_controller(controllers, "memory"))
        return group_limit(root, "/sys/fs/cgroup/memory", group, "memory.limit_in_bytes");
    if (controllers[0] == '\0')
        return group_limit(root, "/sys/fs/cgroup", group, "memory.max");
    return UINT64_MAX;
}

static uint64_t groups_limit(const char *root)
{
    char path[PATH_MAX], line[PATH_MAX + 256];
    uint64_t least = UINT64_MAX;
    (void)snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return UINT64_MAX;
    while (fgets(line, sizeof line, file) != NULL) {
        least = lesser(least, line_limit(root, line));
    }
    (void)fclose(file);
    return least;
}

/* What is installed, not what is free: that would give another limit at every start. Without /proc
 * the system call knows; the file comes first because a container may be shown its own. */
static uint64_t machine_memory(const char *root)
{
    char path[PATH_MAX], line[256];
    uint64_t kibibytes = 0;
    struct sysinfo info;
    (void)snprintf(path, sizeof path, "%s/proc/meminfo", root);
    FILE *file = fopen(path, "re");
    if (file != NULL) {
        while (fgets(line, sizeof line, file) != NULL)
            if (sscanf(line, "MemTotal: %" SCNu64, &kibibytes) == 1)
                break;
        (void)fclose(file);
    }
    if (kibibytes == 0 && sysinfo(&info) == 0)
        kibibytes = (uint64_t)info.totalram * info.mem_unit >> 10;
    return kibibytes << 10;
}

/* "Max address space" and "Max data size", as ulimit -v and -d set them: the soft limits, which are
 * what mmap() goes by. Operands count against both from when they are mapped, touched or not. */
static uint64_t process_limit(const char *root)
{
    char path[PATH_MAX], line[256];
    uint64_t least = UINT64_MAX, limit;
    (void)snprintf(path, sizeof path, "%s/proc/self/limits", root);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return UINT64_MAX;
    while (fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "Max address space %" SCNu64, &limit) == 1 ||
            sscanf(line, "Max data size %" SCNu64, &limit) == 1) /* not "unlimited" */
            least = lesser(least, limit);
    (void)fclose(file);
    return least;
}

uint64_t config_memory_limit_under(const char *root)
{
    return lesser(process_limit(root), lesser(groups_limit(root), machine_memory(root)));
}

uint64_t config_memory_limit(void)
{
    return config_memory_limit_under("");
}
