/* PAPI's calls: answers and states, exact counts of threads, thresholds, and estimates beside the
 * truth. `papi EVENTS` prints a line for each event of a set with more events than the processor
 * has counters: event, native event, kind, count, half width; the truth's tag is 1. On another
 * kernel it says what PAPI_library_init answers. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <papi.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include "works.h"

enum { VISITS = 360, EVENTS = 32, SPINS = 10000000, THRESHOLD = 1000000 };
/* Instructions of the libraries between two calls. */
#define LIBRARY 20000

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            printf("FAILED line %d: %s\n", __LINE__, #condition);                                  \
    } while (0)

/* Two instructions an iteration. */
__attribute__((noinline)) static void spin(uint64_t iterations)
{
    __asm__ volatile("1: sub $1, %0\n jnz 1b" : "+r"(iterations));
}

static int is_near(long long count, long long expected)
{
    return count >= expected && count < expected + LIBRARY;
}

static int set_of(const char *first, const char *second)
{
    int set = PAPI_NULL;
    CHECK(PAPI_create_eventset(&set) == PAPI_OK);
    CHECK(PAPI_add_named_event(set, first) == PAPI_OK);
    if (second)
        CHECK(PAPI_add_named_event(set, second) == PAPI_OK);
    return set;
}

static void remove_set(int set)
{
    CHECK(PAPI_cleanup_eventset(set) == PAPI_OK);
    CHECK(PAPI_destroy_eventset(&set) == PAPI_OK && set == PAPI_NULL);
}

static void check_states(void)
{
    int set = PAPI_NULL, none = 77, state = 0, codes[4], n = 4;
    long long values[2];
    CHECK(PAPI_create_eventset(&set) == PAPI_OK);
    CHECK(PAPI_create_eventset(&set) == PAPI_EINVAL);
    CHECK(PAPI_start(set) == PAPI_ENOCMP);
    CHECK(PAPI_start(none) == PAPI_ENOEVST && PAPI_stop(none, values) == PAPI_ENOEVST);
    CHECK(PAPI_add_event(set, PAPI_TOT_INS) == PAPI_OK);
    CHECK(PAPI_add_event(set, PAPI_TOT_INS) == PAPI_ECNFLCT);
    CHECK(PAPI_add_event(set, PAPI_SP_OPS) == PAPI_ENOEVNT);
    CHECK(PAPI_add_event(set, 5) == PAPI_EINVAL);
    CHECK(PAPI_remove_event(set, PAPI_TOT_CYC) == PAPI_EINVAL);
    CHECK(PAPI_stop(set, values) == PAPI_ENOTRUN);
    CHECK(PAPI_state(set, &state) == PAPI_OK && state == PAPI_STOPPED);
    CHECK(PAPI_attach(set, 1) == PAPI_ECMP);
    CHECK(PAPI_start(set) == PAPI_OK);
    CHECK(PAPI_start(set) == PAPI_EISRUN);
    CHECK(PAPI_add_event(set, PAPI_TOT_CYC) == PAPI_EISRUN);
    CHECK(PAPI_cleanup_eventset(set) == PAPI_EISRUN && PAPI_destroy_eventset(&set) == PAPI_EISRUN);
    CHECK(PAPI_state(set, &state) == PAPI_OK && state == PAPI_RUNNING);
    CHECK(PAPI_read(set, NULL) == PAPI_EINVAL);
    CHECK(PAPI_stop(set, NULL) == PAPI_OK && PAPI_stop(set, NULL) == PAPI_ENOTRUN);
    CHECK(PAPI_destroy_eventset(&set) == PAPI_EINVAL);
    CHECK(PAPI_num_events(set) == 1);
    CHECK(PAPI_list_events(set, codes, &n) == PAPI_OK && n == 1 && codes[0] == PAPI_TOT_INS);
    remove_set(set);
    CHECK(PAPI_num_events(set) == PAPI_ENOEVST);
}

static void check_names(void)
{
    char name[PAPI_MAX_STR_LEN];
    int code = PAPI_NATIVE_MASK, native = 0;
    PAPI_event_info_t info;
    CHECK(strcmp(PAPI_strerror(PAPI_EISRUN), "EventSet is currently counting") == 0);
    CHECK(PAPI_strerror(1) == NULL && PAPI_strerror(-PAPI_NUM_ERRORS) == NULL);
    CHECK(PAPI_event_name_to_code("PAPI_L1_DCM", &code) == PAPI_OK && code == PAPI_L1_DCM);
    CHECK(PAPI_get_event_info(code, &info) == PAPI_OK && info.count == 1);
    CHECK(PAPI_query_named_event(info.name[0]) == PAPI_OK);
    CHECK(PAPI_event_name_to_code("NO_SUCH.EVENT", &code) == PAPI_ENOEVNT);
    code = PAPI_NATIVE_MASK;
    CHECK(PAPI_enum_event(&code, PAPI_ENUM_FIRST) == PAPI_OK);
    do {
        int again = 0;
        CHECK(PAPI_event_code_to_name(code, name) == PAPI_OK);
        CHECK(PAPI_event_name_to_code(name, &again) == PAPI_OK && again == code);
        native++;
    } while (PAPI_enum_event(&code, PAPI_ENUM_EVENTS) == PAPI_OK);
    CHECK(native == PAPI_get_component_info(0)->num_native_events && native > 100);
    CHECK(PAPI_get_hardware_info()->cpu_max_mhz > 100);
}

/* Values of a stopped set stay, a reset makes them 0, sums add up. */
static void check_counts(void)
{
    int set = set_of("PAPI_TOT_INS", "PAPI_TOT_CYC");
    long long values[2], sums[2] = { 0, 0 };
    CHECK(PAPI_start(set) == PAPI_OK);
    spin(SPINS);
    CHECK(PAPI_read(set, values) == PAPI_OK && is_near(values[0], 2 * SPINS));
    spin(SPINS);
    CHECK(PAPI_accum(set, sums) == PAPI_OK && is_near(sums[0], 4 * SPINS));
    spin(SPINS);
    CHECK(PAPI_accum(set, sums) == PAPI_OK && is_near(sums[0], 6 * SPINS));
    CHECK(PAPI_reset(set) == PAPI_OK);
    CHECK(PAPI_stop(set, values) == PAPI_OK && is_near(values[0], 0) && values[1] > 0);
    CHECK(PAPI_start(set) == PAPI_OK);
    spin(SPINS);
    CHECK(PAPI_stop(set, sums) == PAPI_OK && is_near(sums[0], 2 * SPINS));
    CHECK(PAPI_read(set, values) == PAPI_OK && memcmp(values, sums, sizeof sums) == 0);
    CHECK(PAPI_reset(set) == PAPI_OK && PAPI_read(set, values) == PAPI_OK && values[0] == 0);
    remove_set(set);
}

static void *count_thread(void *argument)
{
    uint64_t iterations = SPINS * (uint64_t)argument;
    int set = set_of("PAPI_TOT_INS", NULL);
    long long value;
    CHECK(PAPI_register_thread() == PAPI_OK);
    CHECK(PAPI_start(set) == PAPI_OK);
    spin(iterations);
    CHECK(PAPI_stop(set, &value) == PAPI_OK && is_near(value, 2 * iterations));
    remove_set(set);
    CHECK(PAPI_unregister_thread() == PAPI_OK);
    return NULL;
}

/* More threads than a program can have sessions. */
static void check_threads(void)
{
    pthread_t threads[10];
    CHECK(PAPI_thread_init(pthread_self) == PAPI_OK && PAPI_thread_id() == pthread_self());
    for (uint64_t i = 0; i < 10; i++)
        pthread_create(&threads[i], NULL, count_thread, (void *)(i % 3 + 1));
    for (int i = 0; i < 10; i++)
        pthread_join(threads[i], NULL);
}

static volatile int overflows, is_elsewhere;

static void handle(int set, void *address, long long vector, void *context)
{
    uintptr_t at = (uintptr_t)address, from = (uintptr_t)spin;
    (void)set, (void)context;
    overflows++;
    is_elsewhere += vector != 1 || at < from || at > from + 64;
}

static void check_overflow(void)
{
    int set = set_of("PAPI_TOT_INS", NULL), place[2], n = 2;
    long long value;
    CHECK(PAPI_overflow(set, PAPI_TOT_INS, THRESHOLD, 0, NULL) == PAPI_EINVAL);
    CHECK(PAPI_overflow(set, PAPI_TOT_CYC, THRESHOLD, 0, handle) == PAPI_ENOEVNT);
    CHECK(PAPI_overflow(set, PAPI_TOT_INS, THRESHOLD, 0, handle) == PAPI_OK);
    CHECK(PAPI_get_overflow_event_index(set, 1, place, &n) == PAPI_OK && n == 1 && place[0] == 0);
    CHECK(PAPI_start(set) == PAPI_OK);
    spin(SPINS);
    CHECK(PAPI_stop(set, &value) == PAPI_OK);
    CHECK(overflows == value / THRESHOLD && overflows >= 2 * SPINS / THRESHOLD);
    CHECK(is_elsewhere <= 1);
    CHECK(PAPI_overflow(set, PAPI_TOT_INS, 0, 0, NULL) == PAPI_OK);
    CHECK(PAPI_start(set) == PAPI_OK);
    spin(SPINS);
    CHECK(PAPI_stop(set, &value) == PAPI_OK && overflows < 3 * SPINS / THRESHOLD);
    remove_set(set);
}

/* Of two events: on Intel a difference, on AMD a sum. The places of the set's other events stay. */
static void check_derived(void)
{
    int is_difference = PAPI_query_event(PAPI_BR_UCN) == PAPI_OK, code, set;
    const char *name = is_difference ? "PAPI_BR_UCN" : "PAPI_TLB_IM";
    struct tally_reading readings[3];
    long long values[3];
    PAPI_event_info_t info;
    CHECK(PAPI_event_name_to_code(name, &code) == PAPI_OK);
    CHECK(PAPI_get_event_info(code, &info) == PAPI_OK && info.count == 2);
    CHECK(strcmp(info.derived, is_difference ? "DERIVED_SUB" : "DERIVED_ADD") == 0);
    CHECK(PAPI_query_named_event(info.name[0]) == PAPI_OK);
    set = set_of("PAPI_TOT_CYC", name);
    CHECK(PAPI_add_event(set, PAPI_TOT_INS) == PAPI_OK);
    CHECK(PAPI_overflow(set, code, THRESHOLD, 0, handle) == PAPI_EINVAL);
    CHECK(PAPI_start(set) == PAPI_OK);
    /* Its branches are conditional, its instructions on a page that was used before. */
    spin(SPINS);
    CHECK(PAPI_tally_readings(set, readings, 3) == 3 && readings[1].kind == TALLY_EXACT);
    CHECK(PAPI_stop(set, values) == PAPI_OK && is_near(values[2], 2 * SPINS));
    CHECK(values[0] > 0 && values[1] > 0 && values[1] < LIBRARY);
    remove_set(set);
}

/* Prints the readings of a set of all events. */
static void print_estimates(char *list)
{
    static const char *const kinds[] = { "", "exact", "estimated", "not_measured" };
    struct tally_reading readings[EVENTS];
    const char *events[EVENTS];
    int set = PAPI_NULL, n = 0;
    CHECK(PAPI_create_eventset(&set) == PAPI_OK);
    for (char *event = strtok(list, ","); event && n < EVENTS; event = strtok(NULL, ","))
        CHECK(PAPI_add_named_event(set, events[n++] = event) == PAPI_OK);
    for (uint32_t i = 0; i < NUMBERS; i++)
        numbers[i] = draw() % NUMBERS;
    CHECK(PAPI_start(set) == PAPI_OK);
    mark(1, 1);
    for (uint32_t visit = 0; visit < VISITS; visit++)
        works[draw() % 3].work(2000 + draw() % 12000);
    mark(2, 1);
    CHECK(PAPI_tally_readings(set, readings, EVENTS) == n);
    CHECK(PAPI_stop(set, NULL) == PAPI_OK);
    for (int i = 0; i < n; i++) {
        double half = readings[i].kind == TALLY_ESTIMATED ? readings[i].half_width_95 : 0;
        PAPI_event_info_t info;
        int code = 0;
        CHECK(PAPI_event_name_to_code(events[i], &code) == PAPI_OK);
        CHECK(PAPI_get_event_info(code, &info) == PAPI_OK);
        printf("%s %s %s %" PRIu64 " %.0f\n", events[i], IS_PRESET(code) ? info.name[0] : events[i],
               kinds[readings[i].kind], readings[i].count, half);
    }
    remove_set(set);
}

int main(int argc, char **argv)
{
    int version = PAPI_library_init(PAPI_VER_CURRENT);
    if (version != PAPI_VER_CURRENT) {
        printf("papi: %s\n", PAPI_strerror(version));
        return 0;
    }
    CHECK(PAPI_library_init(PAPI_VER_CURRENT) == PAPI_VER_CURRENT);
    CHECK(PAPI_library_init(1) == PAPI_EINVAL);
    check_states();
    check_names();
    check_counts();
    check_threads();
    check_overflow();
    check_derived();
    if (argc == 2)
        print_estimates(argv[1]);
    PAPI_shutdown();
    CHECK(PAPI_is_initialized() == PAPI_NOT_INITED);
    printf("papi: done\n");
    return 0;
}
