/* Kinds of work with event rates of their own, and the marks of the virtual PMU's truth. */
#include <stdint.h>

enum { NUMBERS = 1 << 19 };

static volatile uint32_t numbers[NUMBERS];
static uint64_t state = 1;

static uint32_t draw(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33);
}

/* Opens (1) or closes (2) a region of the virtual PMU's truth. */
static void mark(uint32_t operation, uint32_t tag)
{
    uint32_t leaf = 0x4f007a11, b;
    __asm__ volatile("cpuid" : "+a"(leaf), "=b"(b), "+c"(operation), "+d"(tag) : : "memory");
}

static void branch(uint32_t steps)
{
    volatile uint32_t sum = 0;
    for (uint32_t i = 0; i < steps; i++)
        if (draw() & 1)
            sum += i;
}

/* Random loads from 2 MiB. */
static void chase(uint32_t steps)
{
    uint32_t at = draw() % NUMBERS;
    while (steps--)
        at = numbers[at];
    numbers[at] = numbers[at];
}

static void stream(uint32_t steps)
{
    uint32_t at = draw() % NUMBERS;
    while (steps--) {
        at = (at + 1) % NUMBERS;
        numbers[at] = numbers[at];
    }
}

static const struct {
    const char *name;
    void (*work)(uint32_t);
} works[] = { { "branch", branch }, { "chase", chase }, { "stream", stream } };
