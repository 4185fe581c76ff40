/* config.c - configuration files: one that is read prints as a file that reads the same. */
#include <sys/mman.h>
#include <unistd.h>

#include "server/config.h"
#include "server/setting.h"
#include "tests/fuzz/fuzz.h"

enum { MESSAGE_BYTES = 512 };

static int file_of(const void *data, size_t size)
{
    int fd = memfd_create("dotd.ini", MFD_CLOEXEC);
    CHECK(fd >= 0 && write(fd, data, size) == (ssize_t)size, "no file");
    return fd;
}

static bool load(int fd, struct config *ret, char *message)
{
    char path[32], program[] = "dotd", flag[] = "--config";
    char *argv[] = {program, flag, path, NULL};
    enum config_action action = CONFIG_HELP;
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    message[0] = '\0';
    bool is_read = config_load(ret, &action, 3, argv, message, MESSAGE_BYTES);
    CHECK(action == CONFIG_RUN, "action %d", action);
    CHECK(is_read || (message[0] != '\0' && strchr(message, '\n') == NULL), "%s", message);
    return is_read;
}

static void check_printed(const struct config *config)
{
    struct config again;
    char message[MESSAGE_BYTES], *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    CHECK(out != NULL, "no memory");
    config_print(out, config);
    (void)fclose(out);
    int fd = file_of(text, size);
    CHECK(load(fd, &again, message), "%s", message);
    for (size_t i = 0; i < SETTING_COUNT; i++)
        CHECK(settings[i].kind == SETTING_SECTION || setting_equal(&settings[i], config, &again),
              "%s", settings[i].name);
    (void)close(fd);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char *nothing[] = {NULL};
    struct config config;
    char message[MESSAGE_BYTES];
    environ = nothing; /* where settings may be as well */
    int fd = file_of(data, size);
    if (load(fd, &config, message))
        check_printed(&config);
    (void)close(fd);
    return 0;
}
