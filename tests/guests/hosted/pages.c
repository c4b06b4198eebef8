/* `pages MEGABYTES PASSES large` maps memory, in pages of 2 MiB if the kernel has them, and loads
 * from each of its 4 KiB in order; `pages MEGABYTES PASSES small` the same in pages of 4 KiB. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define LARGE ((size_t)2 << 20)

int main(int argc, char **argv)
{
    if (argc != 4)
        return 1;
    size_t bytes = (size_t)atol(argv[1]) << 20;
    int advice = strcmp(argv[3], "large") ? MADV_NOHUGEPAGE : MADV_HUGEPAGE;
    char *all = mmap(0, bytes + LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED)
        return 2;
    volatile char *first = (char *)(((uintptr_t)all + LARGE - 1) & ~(LARGE - 1));
    if (madvise((void *)first, bytes, advice))
        return 3;
    for (size_t at = 0; at < bytes; at += 4096)
        first[at] = 1;
    int sum = 0;
    for (long pass = 0; pass < atol(argv[2]); pass++)
        for (size_t at = 0; at < bytes; at += 4096)
            sum += first[at];
    return sum == 0;
}
