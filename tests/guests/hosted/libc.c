/* An ordinary C program: prints the same here as under Linux. `libc FILE WORD…` */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

static _Thread_local unsigned long local = 41;

static int by_value(const void *a, const void *b)
{
    unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    struct stat stat;
    size_t bytes = 0, lines = 0, room = 1000;
    unsigned long sum = 5381;
    char line[4096];

    FILE *file = argc > 1 ? fopen(argv[1], "r") : NULL;
    if (!file) {
        perror("libc");
        return 2;
    }
    fstat(fileno(file), &stat);
    while (fgets(line, sizeof line, file)) {
        bytes += strlen(line);
        for (const char *c = line; *c; c++)
            sum = sum * 33 + (unsigned char)*c;
        if (strchr(line, '\n'))
            lines++;
    }
    rewind(file);
    printf("%zu bytes of %ld, %zu lines, sum %016lx\n", bytes, (long)stat.st_size, lines, sum);
    fclose(file);

    unsigned *numbers = NULL;
    for (size_t i = 0; i < 100000; i++) {
        if (i % room == 0 && !(numbers = realloc(numbers, (i + room) * sizeof *numbers)))
            return 3;
        numbers[i] = (unsigned)(sum = sum * 6364136223846793005ul + 1442695040888963407ul) >> 3;
    }
    qsort(numbers, 100000, sizeof *numbers, by_value);
    printf("%u %u %u\n", numbers[0], numbers[50000], numbers[99999]);
    free(numbers);
    /* Larger than the allocator takes from the heap, so it is mapped and unmapped. */
    char *large = calloc(1, 8 << 20);
    large[(8 << 20) - 1] = 1;
    free(large);
    /* MADV_DONTNEED sets memory to zeros. */
    char *pages = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED)
        return 5;
    memset(pages, 1, 3 * 4096);
    if (madvise(pages + 4096, 4096, MADV_DONTNEED) != 0)
        return 6;
    printf("%d %d %d\n", pages[4095], pages[4096] | pages[8191], pages[8192]);
    /* It does so for memory without access. Unknown advice is refused. */
    memset(pages, 1, 3 * 4096);
    if (mprotect(pages + 4096, 4096, PROT_NONE) != 0 ||
        madvise(pages, 3 * 4096, MADV_DONTNEED) != 0)
        return 8;
    if (mprotect(pages + 4096, 4096, PROT_READ) != 0)
        return 9;
    printf("%d %d %d\n", pages[4095], pages[4096] | pages[8191], pages[8192]);
    if (madvise(pages, 4096, MADV_SEQUENTIAL) != 0 || madvise(pages, 4096, 7777) == 0 ||
        errno != EINVAL)
        return 10;
#ifndef __GLIBC__
    /* musl finds the end of the stack by mremap. glibc reads /proc, which is not here. */
    pthread_attr_t attributes;
    void *stack;
    size_t deep;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0)
        return 11;
    pthread_attr_getstack(&attributes, &stack, &deep);
    printf("%d\n", (char *)stack <= line && line < (char *)stack + deep);
#endif
    clock_t began = clock(), now;
    do
        now = clock();
    while (now >= 0 && now - began < CLOCKS_PER_SEC / 1000);
    printf("%d\n", began >= 0 && now - began < CLOCKS_PER_SEC);
    printf("%.12f %g %s\n", sqrt(2.0) + sin(1.0), 1e300 * 10, argc > 2 ? argv[2] : "nothing");
    local++;
    fprintf(stderr, "%lu\n", local);
    return fopen("no-such-file", "r") ? 4 : 7;
}
