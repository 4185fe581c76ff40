/* fake.h - how tests tell the fake of NVIDIA's management library what to do.
 *
 * Door: dlopen() the library, find these by dlsym(). In a daemon the environment variable FAKE_NVML
 * holds the number of the first mood.
 */
#ifndef TESTS_NVML_FAKE_H
#define TESTS_NVML_FAKE_H

enum fake_mood {
    FAKE_WELL,
    FAKE_INIT_FAILS,
    FAKE_COUNT_FAILS,
    FAKE_FIRST_IS_LOST,
    FAKE_TELLS_LITTLE, /* every call that is not necessary says that it is not supported */
    FAKE_HANGS         /* in the call for the memory, until the mood changes */
};

typedef void (*fake_set_mood)(enum fake_mood mood); /* "fake_mood_set" */
typedef unsigned (*fake_counter)(void); /* "fake_inits", "fake_shutdowns", "fake_hanging" */

#endif
