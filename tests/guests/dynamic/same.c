/* Has a static function of the name that one in the other file has, and executes nine tenths of the
 * loop's times here. */
#include <stdio.h>

#include "loop.h"

long other(long times);

static __attribute__((noinline)) long helper(long times)
{
    return loop(times);
}

int main(void)
{
    printf("%ld\n", helper(3600000) + other(400000));
    return 0;
}
