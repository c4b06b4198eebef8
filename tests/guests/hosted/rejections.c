/* Loads behind stores: `rejections alias ROUNDS` loads from one page what it has just stored to
 * another, at the same place; `rejections late ROUNDS EVERY` stores to an address that comes late,
 * and loads from there in one of EVERY rounds. */
#include <stdlib.h>
#include <string.h>

#define PAGE 4096

static struct {
    char first[PAGE], second[PAGE];
} pages __attribute__((aligned(PAGE)));

static void alias(long rounds)
{
    for (long round = 0; round < rounds; round++) {
        long at = round % 64 * 8, loaded;
        __asm__ volatile("movq %1, (%2)\n movq (%3), %0"
                         : "=r"(loaded)
                         : "r"(round), "r"(pages.first + at), "r"(pages.second + at)
                         : "memory");
    }
}

static void late(long rounds, long every)
{
    long left = every;
    for (long round = 0; round < rounds; round++) {
        /* No division: it would be as late as the store. */
        left = left > 1 ? left - 1 : every;
        long at = round % 64 * 8, loaded, one = 1;
        char *from = pages.first + at + (left == 1 ? 0 : 1024);
        /* The product is the address, seven multiplications later. */
        char *to = pages.first + at;
        __asm__ volatile("imulq %2, %1\n imulq %2, %1\n imulq %2, %1\n imulq %2, %1\n"
                         "imulq %2, %1\n imulq %2, %1\n imulq %2, %1\n"
                         "movq %3, (%1)\n movq (%4), %0"
                         : "=&r"(loaded), "+r"(to)
                         : "r"(one), "r"(round), "r"(from)
                         : "memory", "cc");
    }
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "alias") == 0)
        alias(atol(argv[2]));
    else if (argc == 4 && strcmp(argv[1], "late") == 0)
        late(atol(argv[2]), atol(argv[3]));
    else
        return 1;
    return 0;
}
