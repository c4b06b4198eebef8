/* The other static function of the name. */
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

long other(long times)
{
    return helper(times) + 1;
}
