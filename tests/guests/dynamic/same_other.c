/* The other static function of the name. */
#include "loop.h"

long other(long times);

static __attribute__((noinline)) long helper(long times)
{
    return loop(times);
}

long other(long times)
{
    return helper(times) + 1;
}
