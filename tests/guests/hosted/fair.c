/* Prints how much work each of THREADS threads does in a time: `fair THREADS MILLISECONDS`. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static atomic_int over;
static unsigned long work[16];

static void *spin(void *argument)
{
    unsigned long *own = argument;
    while (!over) {
        for (volatile int i = 0; i < 1000; i++)
            ;
        ++*own;
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int count = argc > 2 ? atoi(argv[1]) : 1, milliseconds = argc > 2 ? atoi(argv[2]) : 100;
    struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000L};
    pthread_t threads[16];

    for (int i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, spin, &work[i]))
            return 1;
    nanosleep(&time, NULL);
    over = 1;
    printf("fair:");
    for (int i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
        printf(" %lu", work[i]);
    }
    printf("\n");
    return 0;
}
