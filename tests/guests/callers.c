/* Calls that have known shares of the instructions: in each turn, `one` has 3 of 10 by itself,
 * `two` 6 of 10, and `deep`, through ten levels and `one`, 1 of 10. */
#include <stdio.h>

#define TURNS 200
#define STEPS 3000

/* Some instructions for each of n steps. The seed is new in each turn, as calls with equal
 * arguments would be made once. */
__attribute__((noinline)) static unsigned leaf(unsigned n, unsigned seed)
{
    unsigned sum = seed;
    for (unsigned i = 0; i < n; i++) {
        sum = sum * 1664525U + 1013904223U;
        if (sum & 0x10000)
            sum ^= i;
    }
    return sum;
}

__attribute__((noinline)) static unsigned one(unsigned n, unsigned seed)
{
    return leaf(n, seed) + 1;
}

__attribute__((noinline)) static unsigned two(unsigned n, unsigned seed)
{
    return leaf(2 * n, seed) * 3;
}

__attribute__((noinline)) static unsigned deep(unsigned levels, unsigned n, unsigned seed)
{
    volatile unsigned pad[8];
    pad[levels % 8] = levels;
    if (levels == 0)
        return one(n, seed);
    return deep(levels - 1, n, seed) + pad[levels % 8];
}

int main(void)
{
    unsigned sum = 0;
    for (int turn = 0; turn < TURNS; turn++) {
        sum += one(STEPS, sum);
        sum += two(STEPS, sum);
        sum += deep(10, STEPS / 3, sum);
    }
    printf("%u\n", sum);
    return 0;
}
