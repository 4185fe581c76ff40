/* config.c - reads, checks and prints the settings of SETTING_MAP (see config.h). */
#include "server/config.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/listen.h"
#include "server/setting.h"

/* Flags that are not settings. */
static const struct option {
    const char *name;
    enum config_action action;
    bool takes_file;
    const char *help;
} options[] = {
    {"config", CONFIG_RUN, true, "read the settings in FILE, else in $DOTD_CONFIG"},
    {"check_config", CONFIG_CHECK, true, "say whether FILE is in order"},
    {"print_config", CONFIG_PRINT, false, "print the settings in force, as a file"},
    {"help", CONFIG_HELP, false, "print this"},
    {"version", CONFIG_VERSION, false, "print the versions of dotd and its libraries"},
};

enum {
    OPTION_COUNT = sizeof options / sizeof options[0],
    PLACE_BYTES = PATH_MAX + 16, /* of "FILE:LINE", with the NUL */
    WIDTH_COLUMNS = 80,          /* of what is printed for people */
    PIECE_BYTES = 16 << 10,      /* read at a time */
    FILE_BYTES_MAX = 1 << 20     /* far more than any file of settings has */
};

/* Variables that begin with DOTD_ and are not settings. A name that ends in _ stands for all that
 * begin so: Kubernetes describes a Service called dotd to every container by such names. */
static const char *const foreign_variables[] = {
    "DOTD_CONFIG", "DOTD_BINARY", "DOTD_URL", "DOTD_PORT", "DOTD_PORT_", "DOTD_SERVICE_",
#ifdef DOTD_FAULTS
    "DOTD_FAULT", "DOTD_CORES", /* gpu/faulty.h, gpu/backend_cpu.c */
#endif
};

enum source { SOURCE_FILE, SOURCE_ENVIRONMENT, SOURCE_FLAG };

struct reading {
    struct config config; /* built here, handed over when all of it is in order */
    enum config_action action;
    const char *path;                      /* of the file, or NULL */
    const char *flag_value[SETTING_COUNT]; /* borrowed from argv; NULL: not given */
    unsigned line_of[SETTING_COUNT];       /* where the file gave it; 0: it did not */
    unsigned line;                         /* of the file, being read */
    FILE *file;                            /* its text in memory */
    int *copy;                             /* of config_load_copy(); NULL: none is wanted */
    bool failed;                           /* message says why; what follows is read past */
    char *message;
    size_t message_size;
};

/* Leaves one line in message: a value with a line feed in it must not make two. Returns false. */
__attribute__((format(printf, 2, 3))) static bool refuse(struct reading *r, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(r->message, r->message_size, format, args);
    va_end(args);
    for (char *c = r->message; *c != '\0'; c++)
        if (iscntrl((unsigned char)*c))
            *c = '?';
    r->failed = true;
    return false;
}

static const char *place_of(const struct reading *r, enum source source, char ret[PLACE_BYTES])
{
    if (source == SOURCE_ENVIRONMENT)
        return "environment";
    if (source == SOURCE_FLAG)
        return "command line";
    (void)snprintf(ret, PLACE_BYTES, "%.*s:%u", PATH_MAX, r->path, r->line);
    return ret;
}

/* queue_jobs as queue_jobs, DOTD_QUEUE_JOBS or --queue-jobs. */
static const char *name_spell(enum source source, const char *name, char ret[SETTING_NAME_BYTES])
{
    static const char *const prefix[] = {"", "DOTD_", "--"};
    (void)snprintf(ret, SETTING_NAME_BYTES, "%s%.*s", prefix[source], SETTING_NAME_BYTES - 6, name);
    for (char *c = ret + strlen(prefix[source]); *c != '\0'; c++)
        if (source == SOURCE_ENVIRONMENT)
            *c = (char)toupper((unsigned char)*c);
        else if (source == SOURCE_FLAG && *c == '_')
            *c = '-';
    return ret;
}

/* Keeps the candidate when it is nearer than what was found before. */
static void nearest_take(const char *candidate, const char *name, const char **nearest,
                         unsigned *distance)
{
    unsigned d = name_distance(candidate, name);
    if (d < *distance) {
        *distance = d;
        *nearest = candidate;
    }
}

/* What was probably meant, or NULL: at most a third of the letters may differ. */
static const char *nearest_name(enum source source, bool is_section, const char *name)
{
    const char *nearest = NULL;
    unsigned distance = (unsigned)strnlen(name, SETTING_NAME_BYTES) / 3 + 2;
    for (size_t i = 0; i < SETTING_COUNT; i++)
        if ((settings[i].kind == SETTING_SECTION) == is_section)
            nearest_take(settings[i].name, name, &nearest, &distance);
    for (size_t i = 0; source == SOURCE_FLAG && i < OPTION_COUNT; i++)
        nearest_take(options[i].name, name, &nearest, &distance);
    return nearest;
}

/* given: as the operator wrote it; name: the same in the table's spelling. */
static bool refuse_name(struct reading *r, enum source source, const char *given, const char *name)
{
    char place[PLACE_BYTES], spelled[SETTING_NAME_BYTES];
    const char *where = place_of(r, source, place);
    const char *nearest = nearest_name(source, false, name);
    if (nearest == NULL)
        return refuse(r, "%s: there is no setting %.80s", where, given);
    return refuse(r, "%s: there is no setting %.80s; did you mean %s?", where, given,
                  name_spell(source, nearest, spelled));
}

static bool refuse_section(struct reading *r, const char *section)
{
    const char *nearest = nearest_name(SOURCE_FILE, true, section);
    if (nearest == NULL)
        return refuse(r, "%s:%u: there is no section [%s]", r->path, r->line, section);
    return refuse(r, "%s:%u: there is no section [%s]; did you mean [%s]?", r->path, r->line,
                  section, nearest);
}

static bool value_take(struct reading *r, enum source source, const struct setting *setting,
                       const char *value)
{
    if (setting_set(&r->config, setting, value))
        return true;
    char place[PLACE_BYTES], spelled[SETTING_NAME_BYTES], allows[128];
    setting_allows(setting, allows, sizeof allows);
    return refuse(r, "%s: %s = %.80s: it must be %s", place_of(r, source, place),
                  name_spell(source, setting->name, spelled), value, allows);
}

/* Feeds inih line by line (its ini_reader). The library's own reader would take the rest of a long
 * line for a line of its own, and an indented key for more of the value above: here comments may
 * be long, other long lines are refused, and indentation means nothing. */
static char *line_read(char *ret, int size, void *context)
{
    struct reading *r = context;
    int length = 0, c = getc(r->file);
    if (c == EOF)
        return NULL;
    r->line++;
    while (c == ' ' || c == '\t')
        c = getc(r->file);
    bool comment = c == '#' || c == ';';
    for (; c != EOF && c != '\n'; c = getc(r->file)) {
        if (length < size - 2)
            ret[length++] = c == '\0' ? '?' : (char)c;
        else if (!comment && !r->failed)
            (void)refuse(r, "%s:%u: the line is longer than %d bytes", r->path, r->line, size - 2);
    }
    ret[length] = '\n';
    ret[length + 1] = '\0';
    return ret;
}

/* One `name = value` (inih's ini_handler): 0 tells the library that the line was wrong. */
static int line_take(void *context, const char *section, const char *name, const char *value)
{
    struct reading *r = context;
    if (r->failed)
        return 0;
    if (!setting_section_exists(section)) {
        if (section[0] == '\0')
            return refuse(r, "%s:%u: %s stands before the first [section]", r->path, r->line, name);
        return refuse_section(r, section);
    }
    const struct setting *setting = setting_find(name);
    if (setting == NULL)
        return refuse_name(r, SOURCE_FILE, name, name);
    if (strcmp(setting_section(setting), section) != 0)
        return refuse(r, "%s:%u: %s belongs in [%s], not in [%s]", r->path, r->line, name,
                      setting_section(setting), section);
    unsigned *line = &r->line_of[setting - settings];
    if (*line != 0)
        return refuse(r, "%s:%u: %s was given in line %u already", r->path, r->line, name, *line);
    *line = r->line;
    return value_take(r, SOURCE_FILE, setting, value);
}

/* All bytes of a descriptor from its beginning on, in one allocation; NULL with errno. */
static char *bytes_read(int fd, size_t *ret_size)
{
    char *bytes = NULL;
    size_t size = 0;
    for (;;) {
        char *grown = size < FILE_BYTES_MAX ? realloc(bytes, size + PIECE_BYTES) : NULL;
        if (size >= FILE_BYTES_MAX)
            errno = EFBIG;
        if (grown == NULL)
            break;
        bytes = grown;
        ssize_t length = read(fd, bytes + size, PIECE_BYTES);
        if (length < 0)
            break;
        if (length == 0) {
            *ret_size = size;
            return bytes;
        }
        size += (size_t)length;
    }
    free(bytes);
    return NULL;
}

/* The same of a copy, whose offset other processes share. */
static char *copy_read(int copy, size_t *ret_size)
{
    struct stat status;
    if (fstat(copy, &status) != 0)
        return NULL;
    char *bytes = malloc((size_t)status.st_size + 1);
    ssize_t length = bytes == NULL ? -1 : pread(copy, bytes, (size_t)status.st_size, 0);
    if (length < 0) {
        free(bytes);
        return NULL;
    }
    *ret_size = (size_t)length;
    return bytes;
}

static bool copy_make(int *ret, const char *bytes, size_t size)
{
    int copy = memfd_create("dotd.ini", MFD_CLOEXEC);
    if (copy < 0)
        return false;
    if (write(copy, bytes, size) != (ssize_t)size) {
        (void)close(copy);
        return false;
    }
    *ret = copy;
    return true;
}

static char *text_read(struct reading *r, size_t *ret_size)
{
    if (r->copy != NULL && *r->copy >= 0)
        return copy_read(*r->copy, ret_size);
    int fd = open(r->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        (void)refuse(r, "%s: cannot be opened: %s", r->path, strerror(errno));
        return NULL;
    }
    char *text = bytes_read(fd, ret_size);
    int cause = errno;
    (void)close(fd);
    errno = cause;
    return text;
}

static bool text_parse(struct reading *r, char *text, size_t size)
{
    r->file = fmemopen(text, size, "r");
    int line = r->file == NULL ? -1 : ini_parse_stream(line_read, r, line_take, r);
    if (!r->failed && line > 0)
        (void)refuse(r, "%s:%d: neither [section] nor name = value", r->path, line);
    else if (!r->failed && line < 0)
        (void)refuse(r, "%s: out of memory", r->path);
    if (r->file != NULL)
        (void)fclose(r->file);
    return !r->failed;
}

static bool file_read(struct reading *r)
{
    size_t size = 0;
    char *text = text_read(r, &size);
    if (text == NULL)
        return r->failed ? false : refuse(r, "%s: cannot be read: %s", r->path, strerror(errno));
    bool is_read = size == 0 || text_parse(r, text, size);
    if (is_read && r->copy != NULL && *r->copy < 0 && !copy_make(r->copy, text, size))
        is_read = refuse(r, "%s: cannot be copied: %s", r->path, strerror(errno));
    free(text);
    return is_read;
}

static bool variable_is_foreign(const char *variable, size_t length)
{
    for (size_t i = 0; i < sizeof foreign_variables / sizeof foreign_variables[0]; i++) {
        size_t size = strlen(foreign_variables[i]);
        bool whole = foreign_variables[i][size - 1] != '_';
        if (length >= size && memcmp(variable, foreign_variables[i], size) == 0 &&
            (!whole || length == size))
            return true;
    }
    return false;
}

/* variable is "DOTD_NAME=value"; only the table's names in upper case are settings. */
static bool variable_read(struct reading *r, const char *variable)
{
    char given[SETTING_NAME_BYTES], name[SETTING_NAME_BYTES], spelled[SETTING_NAME_BYTES];
    size_t length = strcspn(variable, "=");
    if (variable[length] == '\0' || variable_is_foreign(variable, length))
        return true;
    (void)snprintf(given, sizeof given, "%.*s", (int)length, variable);
    (void)snprintf(name, sizeof name, "%s", given + strlen("DOTD_"));
    for (char *c = name; *c != '\0'; c++)
        *c = (char)tolower((unsigned char)*c);
    const struct setting *setting = setting_find(name);
    if (setting == NULL || strcmp(name_spell(SOURCE_ENVIRONMENT, name, spelled), given) != 0)
        return refuse_name(r, SOURCE_ENVIRONMENT, given, name);
    return value_take(r, SOURCE_ENVIRONMENT, setting, variable + length + 1);
}

static bool environment_read(struct reading *r)
{
    for (char **variable = environ; *variable != NULL; variable++)
        if (strncmp(*variable, "DOTD_", strlen("DOTD_")) == 0 && !variable_read(r, *variable))
            return false;
    return true;
}

static const struct option *option_find(const char *name)
{
    for (size_t i = 0; i < OPTION_COUNT; i++)
        if (strcmp(options[i].name, name) == 0)
            return &options[i];
    return NULL;
}

/* "--queue-jobs=5" and "--queue_jobs=5" give queue_jobs, and where the value begins or NULL. */
static const char *flag_split(const char *flag, char ret_name[SETTING_NAME_BYTES])
{
    size_t length = strcspn(flag, "=");
    (void)snprintf(ret_name, SETTING_NAME_BYTES, "%.*s", (int)length - 2, flag + 2);
    for (char *c = ret_name; *c != '\0'; c++)
        if (*c == '-')
            *c = '_';
    return flag[length] == '=' ? flag + length + 1 : NULL;
}

static bool option_take(struct reading *r, const struct option *option, const char *value)
{
    if (r->action == CONFIG_RUN)
        r->action = option->action;
    if (option->takes_file)
        r->path = value;
    else if (value != NULL)
        return refuse(r, "command line: --%s takes no value", option->name);
    return true;
}

/* Reads argv[*index], and the argument after it when that is its value. */
static bool flag_read(struct reading *r, int argc, char **argv, int *index)
{
    const char *flag = argv[*index];
    char name[SETTING_NAME_BYTES];
    if (strcmp(flag, "-h") == 0)
        flag = "--help";
    if (strncmp(flag, "--", 2) != 0 || flag[2] == '\0')
        return refuse(r, "command line: %.80s is not a flag; dotd --help lists them", flag);
    const char *value = flag_split(flag, name);
    const struct option *option = option_find(name);
    const struct setting *setting = setting_find(name);
    if (option == NULL && setting == NULL) {
        char given[SETTING_NAME_BYTES];
        (void)snprintf(given, sizeof given, "%.*s", (int)strcspn(flag, "="), flag);
        return refuse_name(r, SOURCE_FLAG, given, name);
    }
    if (value == NULL && (option == NULL || option->takes_file)) {
        if (*index + 1 == argc)
            return refuse(r, "command line: %.80s needs a value", flag);
        value = argv[++*index];
    }
    if (option != NULL)
        return option_take(r, option, value);
    r->flag_value[setting - settings] = value;
    return true;
}

/* Flags are read first, for the file's name, and count last. --help and --version end the reading:
 * they must work beside anything that is wrong. */
static bool flags_read(struct reading *r, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (!flag_read(r, argc, argv, &i))
            return false;
        if (r->action == CONFIG_HELP || r->action == CONFIG_VERSION)
            return true;
    }
    return true;
}

static bool flags_apply(struct reading *r)
{
    for (size_t i = 0; i < SETTING_COUNT; i++)
        if (r->flag_value[i] != NULL && !value_take(r, SOURCE_FLAG, &settings[i], r->flag_value[i]))
            return false;
    return true;
}

/* A form that the table's rows cannot describe. */
static bool listen_check(struct reading *r)
{
    const char *wrong = listen_address_refusal(r->config.listen);
    return wrong == NULL || refuse(r, "listen = %s: %s", r->config.listen, wrong);
}

bool config_load(struct config *ret, enum config_action *ret_action, int argc, char **argv,
                 char *message, size_t message_size)
{
    return config_load_copy(ret, ret_action, argc, argv, NULL, message, message_size);
}

static const char *path_default(void)
{
    const char *path = getenv("DOTD_CONFIG");
    return path != NULL && path[0] != '\0' ? path : NULL;
}

bool config_load_copy(struct config *ret, enum config_action *ret_action, int argc, char **argv,
                      int *copy, char *message, size_t message_size)
{
    struct reading r = {.copy = copy, .message = message, .message_size = message_size};
    r.path = path_default();
    setting_set_defaults(&r.config);
    *ret_action = CONFIG_USAGE;
    if (!flags_read(&r, argc, argv))
        return false;
    if (r.action != CONFIG_HELP && r.action != CONFIG_VERSION) {
        *ret_action = CONFIG_RUN;
        if (r.path != NULL && !file_read(&r))
            return false;
        if ((r.action != CONFIG_CHECK && !environment_read(&r)) || !listen_check(&r))
            return false;
        *ret_action = CONFIG_USAGE;
        if (!flags_apply(&r) || !listen_check(&r))
            return false;
    }
    if (r.action == CONFIG_CHECK)
        (void)snprintf(message, message_size, "%s: ok", r.path);
    *ret = r.config;
    *ret_action = r.action;
    return true;
}

int config_copy_file(int argc, char **argv)
{
    char message[PLACE_BYTES];
    int copy = -1;
    size_t size = 0;
    struct reading r = {.path = path_default(), .message = message, .message_size = sizeof message};
    if (!flags_read(&r, argc, argv) || r.path == NULL)
        return -1;
    char *text = text_read(&r, &size);
    if (text != NULL)
        (void)copy_make(&copy, text, size);
    free(text);
    return copy;
}

void config_copy_update(int copy, int from)
{
    size_t size;
    char *text = copy >= 0 && from >= 0 ? copy_read(from, &size) : NULL;
    if (text != NULL && ftruncate(copy, 0) == 0)
        (void)!pwrite(copy, text, size, 0);
    free(text);
}

/* Writes text in lines of at most WIDTH_COLUMNS, each behind the prefix. */
static void print_wrapped(FILE *out, const char *prefix, const char *text)
{
    const size_t room = WIDTH_COLUMNS - strlen(prefix) - 1;
    while (*text != '\0') {
        size_t length = strlen(text), cut = length;
        if (length > room)
            for (cut = room; cut > 0 && text[cut] != ' ';)
                cut--;
        if (cut == 0)
            cut = room; /* a word wider than the line */
        fprintf(out, "%s%.*s\n", prefix, (int)cut, text);
        text += cut;
        text += *text == ' ';
    }
}

static void print_meaning(FILE *out, const char *prefix, const struct setting *setting)
{
    char text[640];
    setting_describe(setting, text, sizeof text);
    print_wrapped(out, prefix, text);
}

static void help_options(FILE *out)
{
    char spelled[SETTING_NAME_BYTES], column[SETTING_NAME_BYTES];
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        (void)snprintf(column, sizeof column, "%.40s%s",
                       name_spell(SOURCE_FLAG, options[i].name, spelled),
                       options[i].takes_file ? " FILE" : "");
        fprintf(out, "  %-22s  %s\n", column, options[i].help);
    }
}

void config_help(FILE *out)
{
    static const char *const value_name[] = {
        [SETTING_TEXT] = "TEXT", [SETTING_WORD] = "WORD", [SETTING_NUMBER] = "N"};
    char spelled[SETTING_NAME_BYTES];
    fputs("usage: dotd [--config FILE] [--NAME=VALUE ...]\n\n", out);
    print_wrapped(out, "",
                  "dotd computes dot products over HTTP. The later of these wins: the "
                  "defaults below, FILE, the environment (--log-level is DOTD_LOG_LEVEL), "
                  "the command line. Values of --...-bytes may end in KiB, MiB or GiB.");
    fputs("\n", out);
    help_options(out);
    for (const struct setting *s = settings; s < settings + SETTING_COUNT; s++) {
        if (s->kind == SETTING_SECTION) {
            fprintf(out, "\n[%s]\n", s->name);
            continue;
        }
        fprintf(out, "  %s=%s\n", name_spell(SOURCE_FLAG, s->name, spelled), value_name[s->kind]);
        print_meaning(out, "      ", s);
    }
    fputs("\n", out);
    print_wrapped(out, "",
                  "Variables that begin with DOTD_ and are no setting are refused, except "
                  "DOTD_CONFIG, DOTD_BINARY, DOTD_URL, and DOTD_PORT, DOTD_PORT_* and "
                  "DOTD_SERVICE_*, which Kubernetes sets.");
}

void config_print(FILE *out, const struct config *config)
{
    char value[CONFIG_STRING_BYTES];
    print_wrapped(out, "# ",
                  "dotd.ini - every setting of dotd. One that is left out has the default that its "
                  "comment names.");
    print_wrapped(out, "# ",
                  "The environment (DOTD_LOG_LEVEL) and the command line (--log-level) come after "
                  "this file and win. Sizes may end in KiB, MiB or GiB.");
    print_wrapped(out, "# ",
                  "Those marked live change when dotd is sent SIGHUP; the others when the process "
                  "that serves is replaced, by SIGUSR2 or a restart. [listen] listen and "
                  "[processes] supervise need a restart.");
    for (const struct setting *s = settings; s < settings + SETTING_COUNT; s++) {
        if (s->kind == SETTING_SECTION) {
            fprintf(out, "\n[%s]\n", s->name);
            continue;
        }
        fputs("\n", out);
        print_meaning(out, "# ", s);
        setting_spell(s, config, value);
        fprintf(out, "%s = %s\n", s->name, value);
    }
}

void config_each_number(const struct config *config,
                        void (*each)(void *context, const char *name, uint64_t value),
                        void *context)
{
    for (size_t i = 0; i < SETTING_COUNT; i++)
        if (settings[i].kind == SETTING_NUMBER)
            each(context, settings[i].name,
                 *(const uint64_t *)((const char *)config + settings[i].offset));
}
