/* Jumps in a circle, 16 bytes apart: `jumps ROUNDS` goes ROUNDS times through 14,000, more than a
 * branch target buffer has entries, `jumps ROUNDS few` through 1,000, and `jumps ROUNDS fewer`
 * through 200, fewer than a cache of micro-operations has entries. */
#include <stdlib.h>
#include <string.h>

#define JUMPS(number) \
    __asm__ volatile(".balign 16\n.rept " number "\njmp 1f\n.balign 16\n1:\n.endr")

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : 1;
    const char *jumps = argc > 2 ? argv[2] : "";
    for (long round = 0; round < rounds; round++) {
        if (strcmp(jumps, "fewer") == 0)
            JUMPS("200");
        else if (strcmp(jumps, "few") == 0)
            JUMPS("1000");
        else
            JUMPS("14000");
    }
    return 0;
}
