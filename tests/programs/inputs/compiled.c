extern int printf(const char *, ...);
struct pair { double a; int b; };
static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
int start(int n)
{
    struct pair pair = { n / 3.0, fib(n) };
    for (int i = 0; i < 3; i++)
        printf("%d %.3f %d\n", i, pair.a * i, pair.b);
    return pair.b % 100;
}
