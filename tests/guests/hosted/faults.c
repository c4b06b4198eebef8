/* Computes, with a page fault for each `STEPS` steps: `faults COUNT STEPS`. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/mman.h>

#include "must.h"

#define PAGE 4096L
#define PAGES 16L

int main(int argc, char **argv)
{
    MUST(argc == 3);
    long count = atol(argv[1]), steps = atol(argv[2]);
    volatile unsigned long sum = 0;
    for (long fault = 0; fault < count; fault += PAGES) {
        int flags = MAP_PRIVATE | MAP_ANONYMOUS;
        char *memory = mmap(0, PAGES * PAGE, PROT_READ | PROT_WRITE, flags, -1, 0);
        MUST(memory != MAP_FAILED);
        for (long page = 0; page < PAGES; page++) {
            memory[page * PAGE] = 1;
            for (long step = 0; step < steps; step++)
                sum += step;
        }
        MUST(munmap(memory, PAGES * PAGE) == 0);
    }
    return 0;
}
