/* Phases of about a millisecond: `phases COUNT` runs COUNT phases in random order, each of one of
 * eight kinds and of 0.5 to 1.5 million instructions (one instruction is one nanosecond of virtual
 * time). Equal arguments give equal work. Prints a number that depends on all of it. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Words of a table that fits into no cache, and of one that fits into the second-level cache. */
enum { LARGE = 2 << 20, MIDDLE = 32 << 10 };
/* A unit of a phase's work has about this many instructions. */
enum { UNIT = 1000, MIN_UNITS = 500, RANGE_OF_UNITS = 1000 };

static uint64_t large[LARGE], middle[MIDDLE];
static uint64_t state = 0x9e3779b97f4a7c15;

/* xorshift64 of Marsaglia, "Xorshift RNGs", 2003. */
static inline uint64_t next(uint64_t *x)
{
    *x ^= *x << 13;
    *x ^= *x >> 7;
    *x ^= *x << 17;
    return *x;
}

/* Integer arithmetic in registers. */
static uint64_t arithmetic(uint64_t x)
{
    for (int i = 0; i < UNIT / 5; i++)
        x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9;
    return x;
}

/* Conditional branches that no predictor can learn. */
static uint64_t branches(uint64_t x)
{
    uint64_t sum = 0;
    for (int i = 0; i < UNIT / 12; i++) {
        if (next(&x) & 1)
            __asm__ volatile("incq %0" : "+r"(sum));
        else
            __asm__ volatile("decq %0" : "+r"(sum));
    }
    return x ^ sum;
}

/* Loads that miss the first-level cache. */
static uint64_t middle_loads(uint64_t x)
{
    for (int i = 0; i < UNIT / 10; i++)
        x += middle[next(&x) % MIDDLE];
    return x | 1;
}

/* Loads that miss every cache and the TLBs. */
static uint64_t large_loads(uint64_t x)
{
    for (int i = 0; i < UNIT / 10; i++)
        x += large[next(&x) % LARGE];
    return x | 1;
}

/* Stores to consecutive lines. */
static uint64_t stores(uint64_t x)
{
    static unsigned at;
    for (int i = 0; i < UNIT / 5; i++) {
        at = (at + 8) % LARGE;
        *(volatile uint64_t *)&large[at] = x;
    }
    return next(&x);
}

/* Indirect calls, whose targets change. */
static uint64_t add(uint64_t x) { return x + 7; }
static uint64_t rotate(uint64_t x) { return x << 9 | x >> 55; }
static uint64_t flip(uint64_t x) { return x ^ 0xff51afd7ed558ccd; }
static uint64_t scale(uint64_t x) { return x * 5 | 1; }

static uint64_t indirect(uint64_t x)
{
    static uint64_t (*const volatile functions[])(uint64_t) = {add, rotate, flip, scale};
    for (int i = 0; i < UNIT / 16; i++)
        x = functions[next(&x) % 4](x) | 1;
    return x;
}

/* Calls and returns, deeper than the return stack of a processor. */
static __attribute__((noinline)) uint64_t descend(uint64_t x, int depth)
{
    if (depth == 0)
        return x * 3 | 1;
    x = descend(x + (uint64_t)depth, depth - 1);
    __asm__ volatile("" : "+r"(x)); /* keeps the call a call */
    return x ^ x >> 7;
}

static uint64_t calls(uint64_t x)
{
    for (int i = 0; i < UNIT / 400; i++)
        x = descend(x, 40) | 1;
    return x;
}

/* Divisions. */
static uint64_t divisions(uint64_t x)
{
    for (int i = 0; i < UNIT / 12; i++) {
        uint64_t divisor = next(&x) >> 40 | 1;
        x ^= x / divisor;
        x |= 1;
    }
    return x;
}

int main(int argc, char **argv)
{
    static uint64_t (*const kinds[])(uint64_t) = {arithmetic, branches, middle_loads, large_loads,
                                                  stores,     indirect, calls,        divisions};
    long count = argc == 2 ? atol(argv[1]) : 0;
    if (count <= 0) {
        puts("usage: phases COUNT");
        return 1;
    }
    uint64_t x = 1;
    for (long phase = 0; phase < count; phase++) {
        uint64_t random = next(&state) >> 16;
        long units = MIN_UNITS + (long)(random / 8 % RANGE_OF_UNITS);
        while (units-- > 0)
            x = kinds[random % 8](x);
    }
    printf("%016lx\n", (unsigned long)x);
    return 0;
}
