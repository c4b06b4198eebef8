/* Says that it works, and then never ends: it computes, or with an argument it waits. */
#include <stdio.h>
#include <unistd.h>

int main(int count, char **words)
{
    volatile unsigned long sum = 0;
    (void)words;
    puts("working");
    fflush(stdout);
    while (count > 1)
        sleep(1);
    for (;;)
        sum += sum ^ 3;
}
