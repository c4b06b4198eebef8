/* Has a static function of the name that one in the other file has, and executes nine tenths of the
 * loop's times here. */
#include <stdio.h>

long other(long times);

static __attribute__((noinline)) long helper(long times)
{
    long sum = 0;
    for (long i = 0; i < times; ++i) {
        sum += i ^ (sum << 1);
        __asm__ volatile("" : "+r"(sum));
    }
    return sum;
}

int main(void)
{
    printf("%ld\n", helper(3600000) + other(400000));
    return 0;
}
