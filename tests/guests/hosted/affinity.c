/* Affinities of a program and its threads: prints the same here as under Linux, on any number of
 * CPUs. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "must.h"

#define MAX_THREADS 8

static pthread_barrier_t barrier;

static int is_one_of(int cpu, const cpu_set_t *set)
{
    return cpu >= 0 && CPU_ISSET(cpu, set);
}

/* Runs for several turns of the scheduler and checks the CPU after each piece. */
static void check_cpu(const cpu_set_t *set)
{
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    do {
        for (volatile int i = 0; i < 100000; i++)
            ;
        MUST(is_one_of(sched_getcpu(), set));
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 < 35);
}

static void *pinned(void *argument)
{
    cpu_set_t own;
    cpu_set_t *wanted = argument;
    pthread_barrier_wait(&barrier);
    MUST(sched_getaffinity(0, sizeof own, &own) == 0 && CPU_EQUAL(&own, wanted));
    check_cpu(wanted);
    struct timespec pause = {0, 20000000};
    nanosleep(&pause, NULL);
    check_cpu(wanted);
    return NULL;
}

int main(void)
{
    cpu_set_t all, first, one, none, threads_own[MAX_THREADS];
    pthread_t threads[MAX_THREADS];
    int count = 0;

    CPU_ZERO(&none);
    MUST(sched_getaffinity(0, sizeof first, &first) == 0 && CPU_COUNT(&first) > 0);
    /* Tally names one CPU of those that it lets a program run on: trying finds all. */
    CPU_ZERO(&all);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        if (sched_setaffinity(0, sizeof one, &one) == 0)
            CPU_SET(cpu, &all);
    }
    MUST(sched_setaffinity(0, sizeof all, &all) == 0 && CPU_COUNT(&all) >= CPU_COUNT(&first));
    MUST(is_one_of(sched_getcpu(), &all));
    MUST(sched_setaffinity(0, sizeof none, &none) < 0 && errno == EINVAL);
    for (int round = 0; round < 2; round++)
        for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
            if (CPU_ISSET(cpu, &all)) {
                CPU_ZERO(&one);
                CPU_SET(cpu, &one);
                MUST(sched_setaffinity(0, sizeof one, &one) == 0 && sched_getcpu() == cpu);
                if (round)
                    check_cpu(&one);
                if (count < MAX_THREADS && round)
                    threads_own[count++] = one;
            }
    MUST(sched_setaffinity(0, sizeof all, &all) == 0);
    MUST(pthread_barrier_init(&barrier, NULL, (unsigned)count + 1) == 0);
    for (int i = 0; i < count; i++) {
        MUST(pthread_create(&threads[i], NULL, pinned, &threads_own[i]) == 0);
        MUST(pthread_setaffinity_np(threads[i], sizeof one, &threads_own[i]) == 0);
    }
    pthread_barrier_wait(&barrier);
    check_cpu(&all);
    for (int i = 0; i < count; i++)
        MUST(pthread_join(threads[i], NULL) == 0);
    printf("affinity: done\n");
    return 0;
}
