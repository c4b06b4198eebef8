/* Code on the stack (a nested function whose address is taken), and code that is written, executed,
 * changed and executed again in one page. Prints the same here as under Linux. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

static int apply(int (*f)(int), int n)
{
    int sum = 0;
    for (int i = 0; i < n; i++)
        sum += f(i);
    return sum;
}

int main(int count, char **words)
{
    (void)words;
    int factor = count + 2;
    int times(int x)
    {
        return x * factor;
    }
    printf("stack: %d\n", apply(times, 1000));

    /* mov eax, 1; ret */
    const unsigned char code[] = {0xb8, 1, 0, 0, 0, 0xc3};
    const int all = PROT_READ | PROT_WRITE | PROT_EXEC;
    unsigned char *page = mmap(NULL, 4096, all, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return 1;
    memcpy(page, code, sizeof code);
    int (*run)(void) = (int (*)(void))page;
    int sum = 0;
    for (int i = 0; i < 1000; i++) {
        page[1] = (unsigned char)i;
        sum += run();
    }
    printf("page: %d\n", sum);
    return mprotect(page, 4096, PROT_READ) != 0 || mprotect(page, 4096, all) != 0;
}
