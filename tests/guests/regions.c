/* Regions that nest, repeat and run in several threads, with loops of known content.
 * `regions EVENTS`: instructions first, then branches, and more than there are counters. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <tally_region.h>
#include <unistd.h>

enum { THREADS = 3, VISITS = 80, EVENTS = 32 };
/* Instructions and branches of the library within a visit. */
#define LIBRARY 1500

static int failed;

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("FAILED line %d: %s\n", __LINE__, #condition);                                  \
            failed = 1;                                                                            \
        }                                                                                          \
    } while (0)

/* Two instructions an iteration, one of them a branch. */
static void spin(uint64_t iterations)
{
    __asm__ volatile("1: sub $1, %0\n jnz 1b" : "+r"(iterations));
}

/* 64 instructions an iteration, one of them a branch. */
static void plod(uint64_t iterations)
{
    __asm__ volatile("1: .rept 62\n nop\n .endr\n sub $1, %0\n jnz 1b" : "+r"(iterations));
}

static struct tally_reading readings[EVENTS];

static struct tally_region read_region(const char *name, int64_t thread)
{
    struct tally_region region = { 0 };
    CHECK(tally_region_read(name, thread, &region, readings, EVENTS) > 0);
    return region;
}

static pthread_barrier_t barrier;
static int64_t numbers[THREADS];

static void *thread(void *argument)
{
    uint64_t me = (uint64_t)argument;
    numbers[me] = syscall(SYS_gettid);
    pthread_barrier_wait(&barrier);
    for (int visit = 0; visit < 2; visit++)
        TALLY_REGION("thread") spin(10000000 * (me + 1));
    return NULL;
}

/* Each thread's own instructions, although the others run in between. */
static void check_threads(void)
{
    pthread_t threads[THREADS];
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (uint64_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, thread, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    uint64_t sum = 0;
    for (uint64_t i = 0; i < THREADS; i++) {
        uint64_t expected = 2 * 2 * 10000000 * (i + 1);
        struct tally_region region = read_region("thread", numbers[i]);
        CHECK(region.calls == 2 && region.time_ns > 0);
        CHECK(readings[0].kind == TALLY_EXACT);
        CHECK(readings[0].count >= expected && readings[0].count < expected + LIBRARY);
        sum += readings[0].count;
    }
    CHECK(read_region("thread", 0).calls == 2 * THREADS);
    CHECK(readings[0].count == sum);
}

static void check_nested(void)
{
    TALLY_REGION("outer") {
        spin(1000);
        for (int i = 0; i < 5; i++)
            TALLY_REGION("inner") {
                spin(100);
                if (i == 3)
                    break;
            }
        CHECK(tally_region_stop("inner") == TALLY_WRONG_STATE);
    }
    CHECK(tally_region_stop("outer") == TALLY_WRONG_STATE);
    struct tally_region region;
    CHECK(tally_region_read("nowhere", 0, &region, readings, 0) == TALLY_BAD_ARGUMENT);
    CHECK(read_region("inner", 0).calls == 5);
    uint64_t inner = readings[0].count;
    CHECK(inner >= 5 * 200 && inner < 5 * 200 + 5 * LIBRARY);
    CHECK(read_region("outer", 0).calls == 1 && readings[0].count > inner + 2000);
}

static void check_estimate(const char *name, uint64_t branches)
{
    read_region(name, 0);
    const struct tally_reading *reading = &readings[1];
    double error = (double)reading->count - (double)branches;
    printf("%s: %.1f %% of the time, error %.2f %%, half width %.2f %%\n", name,
           100.0 * (double)reading->counted_cycles / (double)reading->total_cycles,
           100.0 * error / (double)branches, 100.0 * reading->half_width_95 / (double)branches);
    CHECK(reading->kind == TALLY_ESTIMATED);
    CHECK(reading->half_width_95 < 0.5 * (double)branches);
    CHECK((error < 0 ? -error : error) < reading->half_width_95 + VISITS * 100);
}

static void deep(int levels)
{
    CHECK(tally_region_start("deep") == 0);
    spin(10000);
    if (levels > 1)
        deep(levels - 1);
    CHECK(tally_region_stop("deep") == 0);
}

/* A recursion counts once. */
static void check_recursive(void)
{
    deep(20);
    CHECK(read_region("deep", 0).calls == 20);
    CHECK(readings[0].count >= 20 * 20000 && readings[0].count < 20 * (20000 + 2 * LIBRARY));
}

/* Two regions with rates far apart, each visit shorter than a slice. */
static void check_rates(void)
{
    for (int visit = 0; visit < VISITS; visit++) {
        TALLY_REGION("many") spin(100000);
        TALLY_REGION("few") plod(3000);
    }
    check_estimate("many", VISITS * 100000);
    check_estimate("few", VISITS * 3000);
}

int main(int argc, char **argv)
{
    char why[256];
    if (argc != 2 || tally_regions_open(argv[1], why, sizeof why) != 0)
        return printf("FAILED %s\n", argc == 2 ? why : "usage: regions EVENTS"), 1;
    CHECK(tally_regions_open(argv[1], why, sizeof why) == TALLY_BUSY);
    check_rates();
    check_nested();
    check_recursive();
    check_threads();
    tally_regions_print_at_exit();
    printf("regions: done\n");
    return failed;
}
