/* allocations.c - allocations that fail (see allocations.h). What does not fail goes to whoever
 * would have had it, a sanitizer or the C library. */
#include "tests/fault/allocations.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct allocations own;
static struct allocations *control = &own; /* set before there are threads */
static _Thread_local bool is_spared;

void allocations_fail(uint64_t first, uint64_t last)
{
    control->first = 0;
    control->count = 0;
    control->last = last;
    control->first = first;
}

uint64_t allocations_allow(void)
{
    control->first = 0;
    return control->count;
}

void allocations_spare_thread(void)
{
    is_spared = true;
}

static bool must_fail(void)
{
    uint64_t first = control->first;
    if (first == 0 || is_spared)
        return false;
    uint64_t number = ++control->count;
    if (number < first || number > control->last)
        return false;
    errno = ENOMEM;
    return true;
}

/* dlsym() of glibc 2.36 does not allocate for a symbol that is there. */
#define NEXT(name) ((__typeof__(&(name)))dlsym(RTLD_NEXT, #name))

void *malloc(size_t size)
{
    static void *(*next)(size_t);
    if (next == NULL)
        next = NEXT(malloc);
    return must_fail() ? NULL : next(size);
}

void *calloc(size_t count, size_t size)
{
    static void *(*next)(size_t, size_t);
    if (next == NULL)
        next = NEXT(calloc);
    return must_fail() ? NULL : next(count, size);
}

void *realloc(void *block, size_t size)
{
    static void *(*next)(void *, size_t);
    if (next == NULL)
        next = NEXT(realloc);
    return must_fail() ? NULL : next(block, size);
}

void *mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset)
{
    if (must_fail())
        return MAP_FAILED;
    return (void *)syscall(SYS_mmap, address, size, protection, flags, fd, offset);
}

/* In front of a daemon. */
__attribute__((constructor)) static void obey_file(void)
{
    const char *path = getenv("ALLOCATIONS_FILE");
    int fd = path != NULL ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *page = mmap(NULL, sizeof own, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page != MAP_FAILED)
        control = page;
    (void)close(fd);
}
