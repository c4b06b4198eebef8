/* Threads that allocate and free with each other's memory, by jemalloc. */
#include <jemalloc/jemalloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4, PIECES = 400 };
static char *pieces[THREADS][PIECES];

static void *fill(void *own)
{
    char **mine = own;
    for (size_t i = 0; i < PIECES; i++) {
        size_t bytes = 16 + i * i % 60000;
        mine[i] = malloc(bytes);
        memset(mine[i], (int)i, bytes);
        if (i % 3 == 0)
            mine[i] = realloc(mine[i], bytes * 3);
    }
    return NULL;
}

static void *clear(void *other)
{
    char **theirs = other;
    size_t sum = 0;
    for (size_t i = 0; i < PIECES; i++) {
        sum += (unsigned char)theirs[i][15];
        free(theirs[i]);
    }
    return (void *)sum;
}

int main(void)
{
    pthread_t threads[THREADS];
    size_t all = 0, arenas = 0, size = sizeof arenas;
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, fill, pieces[i]);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, clear, pieces[(i + 1) % THREADS]);
    for (int i = 0; i < THREADS; i++) {
        void *sum;
        pthread_join(threads[i], &sum);
        all += (size_t)sum;
    }
    int status = mallctl("arena.0.purge", NULL, NULL, NULL, 0);
    status |= mallctl("stats.allocated", &arenas, &size, NULL, 0);
    printf("jemalloc: %zu, %d, %d\n", all, status, arenas > 0);
    return 0;
}
