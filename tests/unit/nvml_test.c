/* NVIDIA's management library, as a fake: told of, sparse, failing, hanging, absent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dlfcn.h>
#include <string.h>
#include <time.h>

#include "gpu/clock.h"
#include "gpu/nvml.h"
#include "tests/nvml/fake.h"

enum { DEADLINE_S = 60 }; /* for what should happen soon; only a hang ever waits so long */

struct fake {
    void *object; /* keeps the library loaded, with what it counts, while nvml_open() has it too */
    fake_set_mood set_mood;
    fake_counter inits, shutdowns, hanging;
    struct nvml *nvml;
};

static struct fake open_fake(const char *library, enum fake_mood mood)
{
    struct fake fake = {.object = dlopen(library, RTLD_NOW | RTLD_LOCAL)};
    assert_non_null(fake.object);
    fake.set_mood = dlsym(fake.object, "fake_mood_set");
    fake.inits = dlsym(fake.object, "fake_inits");
    fake.shutdowns = dlsym(fake.object, "fake_shutdowns");
    fake.hanging = dlsym(fake.object, "fake_hanging");
    fake.set_mood(mood);
    assert_int_equal(nvml_open(&fake.nvml, library, 1), ERR_OK);
    return fake;
}

static void close_fake(struct fake *fake)
{
    nvml_close(fake->nvml);
    assert_int_equal(fake->inits(), fake->shutdowns());
    (void)dlclose(fake->object);
}

static void pause_a_moment(void)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    (void)nanosleep(&pause, NULL);
}

/* What it says about a time after this call. */
static struct nvml_reading read_anew(const struct fake *fake)
{
    struct nvml_reading reading;
    int64_t begun_ns = clock_ns(), asked_ns[2] = {0, 0};
    /* The first that is told after now may have been asked before. */
    while (asked_ns[1] == 0) {
        assert_true(clock_ns() - begun_ns < DEADLINE_S * INT64_C(1000000000));
        pause_a_moment();
        nvml_read(fake->nvml, &reading);
        if (reading.asked_ns > begun_ns && reading.asked_ns != asked_ns[0]) {
            asked_ns[1] = asked_ns[0];
            asked_ns[0] = reading.asked_ns;
        }
    }
    return reading;
}

static void devices_are_told_with_all_that_is_known(void **state)
{
    (void)state;
    struct fake fake = open_fake(FAKE_NVML_WHOLE, FAKE_WELL);
    struct nvml_reading reading = read_anew(&fake);
    assert_int_equal(reading.state, NVML_TOLD);
    assert_int_equal(reading.device_count, 2);
    const struct nvml_device *first = &reading.device[0], *second = &reading.device[1];
    assert_string_equal(first->uuid, "GPU-fake-0");
    assert_string_equal(first->name, "Fake \"quoted\" \\ device");
    assert_int_equal(first->known, NVML_MEMORY | NVML_UTILIZATION | NVML_TEMPERATURE | NVML_POWER |
                                       NVML_ECC_CORRECTED | NVML_ECC_UNCORRECTED);
    assert_int_equal(first->memory_size_bytes, 150000000000);
    assert_int_equal(first->memory_used_bytes, 1000000000);
    assert_int_equal(first->utilization_percent, 37);
    assert_int_equal(first->temperature_celsius, 40);
    assert_int_equal(first->power_milliwatts, 98765);
    assert_int_equal(first->ecc_corrected, 7);
    assert_int_equal(first->ecc_uncorrected, 1);
    assert_string_equal(second->uuid, "GPU-fake-1");
    assert_int_equal(second->memory_used_bytes, 2000000000);
    assert_false(second->known & NVML_ECC_CORRECTED);
    assert_int_equal(fake.inits(), 1);
    close_fake(&fake);
}

static void what_a_library_lacks_is_not_known(void **state)
{
    (void)state;
    struct fake fake = open_fake(FAKE_NVML_SPARSE, FAKE_WELL);
    struct nvml_reading reading = read_anew(&fake);
    assert_int_equal(reading.state, NVML_TOLD);
    assert_int_equal(reading.device_count, 2);
    assert_int_equal(reading.device[0].known, NVML_MEMORY | NVML_UTILIZATION);
    close_fake(&fake);
}

static void a_library_without_the_necessary_fails(void **state)
{
    (void)state;
    struct fake fake = open_fake(FAKE_NVML_BROKEN, FAKE_WELL);
    struct nvml_reading reading = read_anew(&fake);
    assert_int_equal(reading.state, NVML_FAILED);
    assert_int_equal(reading.device_count, 0);
    close_fake(&fake);
}

static void what_a_device_does_not_support_is_not_known(void **state)
{
    (void)state;
    struct fake fake = open_fake(FAKE_NVML_WHOLE, FAKE_TELLS_LITTLE);
    struct nvml_reading reading = read_anew(&fake);
    assert_int_equal(reading.state, NVML_TOLD);
    assert_int_equal(reading.device_count, 2);
    assert_int_equal(reading.device[0].known, 0);
    assert_string_equal(reading.device[0].name, "");
    close_fake(&fake);
}

static void a_device_that_falls_out_is_left_out(void **state)
{
    (void)state;
    struct fake fake = open_fake(FAKE_NVML_WHOLE, FAKE_WELL);
    assert_int_equal(read_anew(&fake).device_count, 2);
    fake.set_mood(FAKE_FIRST_IS_LOST);
    struct nvml_reading reading = read_anew(&fake);
    assert_int_equal(reading.state, NVML_TOLD);
    assert_int_equal(reading.device_count, 1);
    assert_string_equal(reading.device[0].uuid, "GPU-fake-1");
    close_fake(&fake);
}

static void a_driver_that_fails_is_tried_again(void **state)
{
    (void)state;
    struct fake fake = open_fake(FAKE_NVML_WHOLE, FAKE_INIT_FAILS);
    assert_int_equal(read_anew(&fake).state, NVML_FAILED);
    fake.set_mood(FAKE_WELL);
    assert_int_equal(read_anew(&fake).state, NVML_TOLD);
    fake.set_mood(FAKE_COUNT_FAILS);
    struct nvml_reading reading = read_anew(&fake);
    assert_int_equal(reading.state, NVML_FAILED);
    assert_int_equal(reading.device_count, 0);
    fake.set_mood(FAKE_WELL);
    assert_int_equal(read_anew(&fake).device_count, 2);
    close_fake(&fake);
}

static void a_call_that_hangs_holds_up_nobody(void **state)
{
    (void)state;
    struct fake fake = open_fake(FAKE_NVML_WHOLE, FAKE_WELL);
    assert_int_equal(read_anew(&fake).state, NVML_TOLD);
    fake.set_mood(FAKE_HANGS);
    while (fake.hanging() == 0)
        pause_a_moment();
    struct nvml_reading reading, again;
    nvml_read(fake.nvml, &reading);
    nvml_read(fake.nvml, &again);
    assert_int_equal(reading.state, NVML_TOLD); /* what was said last stays */
    assert_int_equal(reading.asked_ns, again.asked_ns);
    nvml_close(fake.nvml); /* and so does this return */
    assert_int_equal(fake.hanging(), 1);
    unsigned shutdowns = fake.shutdowns();
    fake.set_mood(FAKE_WELL);
    while (fake.shutdowns() == shutdowns) /* the thread cleans up by itself */
        pause_a_moment();
    (void)dlclose(fake.object);
}

static void a_machine_without_the_library_is_no_error(void **state)
{
    (void)state;
    struct nvml *nvml = NULL;
    struct nvml_reading reading;
    assert_int_equal(nvml_open(&nvml, "libdotd-is-not-there.so.1", 1), ERR_OK);
    nvml_read(nvml, &reading);
    assert_int_equal(reading.state, NVML_ABSENT);
    assert_int_equal(reading.device_count, 0);
    nvml_close(nvml);
    nvml_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_are_told_with_all_that_is_known),
        cmocka_unit_test(what_a_library_lacks_is_not_known),
        cmocka_unit_test(a_library_without_the_necessary_fails),
        cmocka_unit_test(what_a_device_does_not_support_is_not_known),
        cmocka_unit_test(a_device_that_falls_out_is_left_out),
        cmocka_unit_test(a_driver_that_fails_is_tried_again),
        cmocka_unit_test(a_call_that_hangs_holds_up_nobody),
        cmocka_unit_test(a_machine_without_the_library_is_no_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
