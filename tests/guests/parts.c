/* Parts: reset, accumulated, in several threads, each with rates and a truth of its own. One
 * session has a part for each kind of work, the tag of whose truth is the kind's number from 1.
 * `parts EVENTS` prints a line for each part and event: kind of work, event, kind, count, half
 * width. Instructions come first where threads are checked. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <tally_part.h>
#include "works.h"

enum { VISITS = 360, EVENTS = 32, THREADS = 3 };
/* Instructions of the library and of the C library between two calls. */
#define LIBRARY 20000

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            printf("FAILED line %d: %s\n", __LINE__, #condition);                                  \
    } while (0)

static void print(const char *work, int64_t part, char *const *events, int n)
{
    static const char *const kinds[] = { "", "exact", "estimated", "not_measured" };
    struct tally_reading readings[EVENTS];
    CHECK(tally_part_read(part, readings, EVENTS) == n);
    for (int i = 0; i < n; i++) {
        const struct tally_reading *reading = &readings[i];
        double half = reading->kind == TALLY_ESTIMATED ? reading->half_width_95 : 0;
        printf("%s %s %s %" PRIu64 " %.0f\n", work, events[i], kinds[reading->kind],
               reading->count, half);
    }
}

/* Two instructions an iteration. */
static void spin(uint64_t iterations)
{
    __asm__ volatile("1: sub $1, %0\n jnz 1b" : "+r"(iterations));
}

static int64_t session;
static pthread_barrier_t barrier;

static int counts(int64_t part, uint64_t expected)
{
    struct tally_reading readings[1];
    CHECK(tally_part_read(part, readings, 1) > 0);
    CHECK(readings[0].kind == TALLY_EXACT);
    return readings[0].count >= expected && readings[0].count < expected + LIBRARY;
}

/* Each thread's own instructions, although the others run in between. */
static void *count_thread(void *argument)
{
    uint64_t me = (uint64_t)argument, iterations = 10000000 * (me + 1);
    int64_t part = tally_part(session);
    pthread_barrier_wait(&barrier);
    spin(iterations);
    CHECK(counts(part, 2 * iterations));
    CHECK(tally_part_accumulate(part) == 0);
    spin(iterations);
    CHECK(tally_part_skip(part) == 0);
    spin(iterations);
    CHECK(counts(part, 4 * iterations));
    CHECK(tally_part_reset(part) == 0);
    CHECK(counts(part, 0));
    pthread_barrier_wait(&barrier);
    return (void *)part;
}

static void check_threads(void)
{
    pthread_t threads[THREADS];
    session = tally_open("instructions", NULL, NULL, 0);
    CHECK(session > 0 && tally_start(session) == 0);
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (uint64_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, count_thread, (void *)i);
    for (int i = 0; i < THREADS; i++) {
        void *part;
        pthread_join(threads[i], &part);
        CHECK(tally_part_reset((int64_t)part) == TALLY_WRONG_STATE);
        CHECK(tally_part_close((int64_t)part) == 0);
        CHECK(tally_part_close((int64_t)part) == TALLY_BAD_ARGUMENT);
    }
    CHECK(tally_close(session) == 0);
    CHECK(tally_part(session) == TALLY_NO_SESSION);
}

int main(int argc, char **argv)
{
    char list[1024] = "", why[256], *events[EVENTS];
    int n = 0;
    int64_t parts[3];
    check_threads();
    snprintf(list, sizeof list, "%s", argc == 2 ? argv[1] : "");
    session = tally_open(list, NULL, why, sizeof why);
    if (session < 0 || tally_start(session) != 0)
        return printf("FAILED %s\n", why), 1;
    for (char *event = strtok(list, ","); event && n < EVENTS; event = strtok(NULL, ","))
        events[n++] = event;
    for (uint32_t i = 0; i < NUMBERS; i++)
        numbers[i] = draw() % NUMBERS;
    for (uint32_t kind = 0; kind < 3; kind++)
        parts[kind] = tally_part(session);
    for (uint32_t kind = 0; kind < 3; kind++)
        CHECK(tally_part_reset(parts[kind]) == 0);
    for (uint32_t visit = 0; visit < VISITS; visit++) {
        uint32_t kind = draw() % 3, steps = 2000 + draw() % 12000;
        tally_part_skip(parts[kind]);
        mark(1, kind + 1);
        works[kind].work(steps);
        mark(2, kind + 1);
        tally_part_accumulate(parts[kind]);
    }
    for (uint32_t kind = 0; kind < 3; kind++) {
        tally_part_skip(parts[kind]);
        print(works[kind].name, parts[kind], events, n);
    }
    return 0;
}
