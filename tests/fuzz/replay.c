/* replay.c - feeds a target the inputs that were kept: each file of the folders named, each file
 * named. */
#include "tests/fuzz/fuzz.h"

#include <dirent.h>
#include <sys/stat.h>

static void replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    struct stat status;
    CHECK(file != NULL && fstat(fileno(file), &status) == 0, "%s cannot be read", path);
    size_t size = (size_t)status.st_size;
    char *data = malloc(size + 1);
    CHECK(data != NULL && fread(data, 1, size, file) == size, "%s cannot be read", path);
    (void)fclose(file);
    char *copy = copy_of(data, size);
    free(data);
    fprintf(stderr, "%s\n", path); /* the last one named is the one that fails */
    (void)LLVMFuzzerTestOneInput((const uint8_t *)copy, size);
    free(copy);
}

/* Returns how many files it was. */
static unsigned replay(const char *path)
{
    DIR *folder = opendir(path);
    if (folder == NULL) {
        replay_file(path);
        return 1;
    }
    unsigned count = 0;
    const struct dirent *entry;
    while ((entry = readdir(folder)) != NULL) {
        char name[4096];
        if (entry->d_name[0] == '.')
            continue;
        (void)snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        count += replay(name);
    }
    (void)closedir(folder);
    return count;
}

int main(int argc, char **argv)
{
    unsigned count = 0;
    for (int i = 1; i < argc; i++)
        count += replay(argv[i]);
    printf("%u inputs\n", count);
    return count > 0 ? 0 : 1;
}
