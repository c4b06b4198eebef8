#pragma once

long in_program(long times);
long in_library(long times);
long in_loaded(long times);

/* A loop of the same instructions in each function that has it. */
static inline __attribute__((always_inline)) long loop(long times)
{
    long sum = 0;
    for (long i = 0; i < times; ++i) {
        sum += i ^ (sum << 1);
        __asm__ volatile("" : "+r"(sum));
    }
    return sum;
}
