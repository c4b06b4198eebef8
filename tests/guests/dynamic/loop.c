/* The loop, in a program and in libraries, under a name for each. */
#include "loop.h"

#ifndef NAME
#define NAME in_program
#endif

__attribute__((noinline)) long NAME(long times)
{
    return loop(times);
}
