/* A loop, in a program and in libraries, under a name for each. */
#include "loop.h"

#ifndef NAME
#define NAME in_program
#endif

__attribute__((noinline)) long NAME(long times)
{
    long sum = 0;
    for (long i = 0; i < times; ++i) {
        sum += i ^ (sum << 1);
        __asm__ volatile("" : "+r"(sum));
    }
    return sum;
}
