/* Two threads that each count in a variable of their own: `neighbours STEPS`. Two of the variables
 * are in one cache line, whose address is printed; two are in lines of their own. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define LINE 64

static _Alignas(LINE) volatile long shared[LINE / sizeof(long)];
static _Alignas(LINE) volatile long apart[2][LINE / sizeof(long)];
static long steps;

static void *count(void *argument)
{
    long number = (long)argument;
    for (long step = 0; step < steps; step++) {
        shared[number]++;
        apart[number][0]++;
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[2];
    steps = argc > 1 ? strtol(argv[1], NULL, 10) : 100000;
    for (long number = 0; number < 2; number++)
        if (pthread_create(&threads[number], NULL, count, (void *)number))
            return 1;
    for (long number = 0; number < 2; number++)
        if (pthread_join(threads[number], NULL))
            return 1;
    printf("%#lx\n", (unsigned long)shared);
    return 0;
}
