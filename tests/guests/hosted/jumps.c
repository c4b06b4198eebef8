/* Jumps in a circle, 16 bytes apart: `jumps ROUNDS` goes ROUNDS times through 14,000, more than a
 * branch target buffer has entries, and `jumps ROUNDS few` through 1,000. */
#include <stdlib.h>

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : 1;
    for (long round = 0; round < rounds; round++) {
        if (argc > 2)
            __asm__ volatile(".balign 16\n.rept 1000\njmp 1f\n.balign 16\n1:\n.endr");
        else
            __asm__ volatile(".balign 16\n.rept 14000\njmp 1f\n.balign 16\n1:\n.endr");
    }
    return 0;
}
