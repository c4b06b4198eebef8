/* A library that `opens` loads while it runs: with thread-local data, a constructor, a destructor
 * and a function that is resolved when it is first called. */
#include <math.h>
#include <stdio.h>

#include "needed.h"

static __thread int own = 40;

__attribute__((constructor)) static void begin(void)
{
    puts("plugin: constructor");
}

__attribute__((destructor)) static void end(void)
{
    puts("plugin: destructor");
}

int answer(double x)
{
    return own + needed_calls() + (int)cos(x);
}
