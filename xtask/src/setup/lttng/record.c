/* Writes records by LTTng-UST and prints the nanoseconds per record, once per repetition. Fails if
   no session receives them. */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "record.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define RECORDS 4096000UL

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

int main(int argc, char **argv)
{
    int repetitions = argc > 1 ? atoi(argv[1]) : 1;
    if (!lttng_ust_tracepoint_enabled(tally, record)) {
        fprintf(stderr, "no session takes the records\n");
        return 1;
    }
    for (int i = 0; i < repetitions; i++) {
        double start = now();
        for (unsigned long n = 0; n < RECORDS; n++)
            lttng_ust_tracepoint(tally, record, n);
        printf("%.3f\n", (now() - start) / RECORDS);
    }
    return 0;
}
