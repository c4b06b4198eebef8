/* Counts what this program and its threads do and prints a line for each event. On another kernel
 * than Tally it says so, works all the same, and counts nothing. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <tally.h>

enum { EVENTS = 6, THREADS = 4, NUMBERS = 100000 };
static const char *const names[EVENTS] = {
    "instructions", "cycles", "branches", "branch-misses", "L1-dcache-load-misses",
    "dTLB-load-misses",
};
#define LIST "instructions,cycles,branches,branch-misses,L1-dcache-load-misses,dTLB-load-misses"

static _Thread_local uint64_t numbers[1024];

/* Fills a table at random and sums it up. */
static void *work(void *sum)
{
    uint64_t state = 1;
    for (int i = 0; i < NUMBERS; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        if (state >> 63)
            numbers[state >> 40 & 1023] += state >> 32;
    }
    for (int i = 0; i < 1024; i++)
        *(uint64_t *)sum += numbers[i];
    return NULL;
}

static void print(const char *name, const struct tally_reading *reading)
{
    if (reading->kind == TALLY_EXACT)
        printf("%-22s %12" PRIu64 "  exact\n", name, reading->count);
    else if (reading->kind == TALLY_ESTIMATED)
        printf("%-22s %12" PRIu64 "  ± %.0f\n", name, reading->count, reading->half_width_95);
    else
        printf("%-22s not measured\n", name);
}

int main(void)
{
    char why[256];
    int64_t session = tally_open(LIST, NULL, why, sizeof why);
    if (session < 0)
        printf("not counted: %s\n", why);
    tally_start(session);

    pthread_t threads[THREADS];
    uint64_t sums[THREADS] = { 0 };
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, &sums[i]))
            return 1;
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);

    tally_stop(session);
    struct tally_reading readings[EVENTS];
    if (tally_read(session, readings, EVENTS) == EVENTS)
        for (int i = 0; i < EVENTS; i++)
            print(names[i], &readings[i]);
    tally_close(session);
    printf("sum: %" PRIu64 "\n", sums[0] + sums[THREADS - 1]);
    return 0;
}
