/* Two threads, each with a function of its own: prints their names and numbers, `halves ROUNDS`. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static long rounds;

__attribute__((noinline)) static void odd(void)
{
    for (volatile long i = 0; i < rounds; i++)
        ;
}

__attribute__((noinline)) static void even(void)
{
    for (volatile long i = 0; i < 2 * rounds; i++)
        ;
}

static void *run(void *argument)
{
    printf("%s %d\n", argument ? "odd" : "even", gettid());
    if (argument)
        odd();
    else
        even();
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[2];

    rounds = argc > 1 ? atol(argv[1]) : 1000000;
    for (long i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, run, (void *)i))
            return 1;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
