/* Uses no library, so that it can be linked in any layout: reads constants, initial data and zeros,
 * writes to the latter two, and prints what it found. A position-independent build is loaded at a
 * multiple of its segments' alignment. */
#ifdef __PIE__
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
#define MISALIGNED ((unsigned long)__ehdr_start % (2 << 20) / 4096)
#else
#define MISALIGNED 0
#endif

static long call(long number, long a, long b, long c)
{
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c)
                     : "rcx", "r11", "memory");
    return result;
}

static const char numbers[] = "0123456789";
static char text[] = "? of 3\n";
static volatile int initial = 3, zeros[2000];

__attribute__((force_align_arg_pointer)) void _start(void)
{
    zeros[1999] += initial + MISALIGNED;
    text[0] = numbers[zeros[1999] + zeros[0]];
    call(1, 1, (long)text, sizeof text - 1);
    call(60, zeros[1999] + 1, 0, 0);
}
