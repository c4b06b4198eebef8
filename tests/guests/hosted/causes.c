/* Programs that lose their cycles to one cause by construction: `causes CAUSE STEPS`. Each cause of
 * a breakdown has three: mispredicted branches (random, indirect, returns), code (straight, pages,
 * jumps), data (second, tlb, memory), execution units (divider, chain, port). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define LINE 64
#define PAGE 4096

static unsigned long seed = 1;

/* A linear congruence; the high bits are random. */
static unsigned long next(void)
{
    seed = seed * 6364136223846793005 + 1442695040888963407;
    return seed >> 33;
}

static long random_branches(long steps)
{
    long taken = 0;
    while (steps--) {
        if (next() & 1)
            __asm__ volatile("incq %0" : "+r"(taken));
        else
            __asm__ volatile("decq %0" : "+r"(taken));
    }
    return taken;
}

static long indirect_jumps(long steps)
{
    static void *const targets[] = {&&a, &&b, &&c, &&d, &&e, &&f, &&g, &&h};
    long sum = 0;
    for (;;) {
        if (steps-- == 0)
            return sum;
        goto *targets[next() % 8];
    a: sum += 1; continue;
    b: sum ^= 2; continue;
    c: sum += 3; continue;
    d: sum ^= 4; continue;
    e: sum += 5; continue;
    f: sum ^= 6; continue;
    g: sum += 7; continue;
    h: sum ^= 8; continue;
    }
}

/* Deeper than any stack of return addresses, of two call sites that take turns at random. */
__attribute__((noinline)) static long recurse(long depth)
{
    long below = 1;
    if (depth > 0)
        below = next() & 1 ? recurse(depth - 1) + 1 : recurse(depth - 1) ^ 3;
    __asm__ volatile("" : "+r"(below));
    return below;
}

static long returns(long steps)
{
    long sum = 0;
    for (; steps > 0; steps -= 200)
        sum += recurse(200);
    return sum;
}

/* Code that a program writes for itself. */
static unsigned char *code, *end;

static void emit(const char *bytes, size_t count)
{
    memcpy(end, bytes, count);
    end += count;
}

static void emit_jump(char opcode, const unsigned char *to)
{
    int distance = (int)(to - (end + 5));
    emit(&opcode, 1);
    emit((const char *)&distance, sizeof distance);
}

static void make_room(size_t bytes)
{
    code = end = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (code == MAP_FAILED)
        exit(1);
}

/* Executes the code from `entry` on, `rounds` times. */
static long execute(size_t bytes, const unsigned char *entry, long rounds)
{
    void (*function)(void);
    memcpy(&function, &entry, sizeof function);
    if (mprotect(code, bytes, PROT_READ | PROT_EXEC))
        exit(1);
    while (rounds-- > 0)
        function();
    return 0;
}

/* 384 KiB of four independent additions a step, beyond the first-level caches. */
static long straight_code(long steps)
{
    const long of_round = 32768;
    const char adds[] = "\x83\xc0\x01\x83\xc1\x01\x83\xc2\x01\x83\xc6\x01";
    size_t bytes = of_round * 12 + PAGE;
    make_room(bytes);
    for (long step = 0; step < of_round; step++)
        emit(adds, 12);
    emit("\xc3", 1);
    return execute(bytes, code, steps / of_round);
}

/* 384 functions, each on its own page, and those of 64 pages each in its own set of the cache. */
static long pages_of_code(long steps)
{
    const long functions = 384;
    size_t bytes = (functions + 1) * PAGE;
    make_room(bytes);
    for (long at = 0; at < functions; at++)
        code[at * PAGE + at % 64 * LINE] = 0xc3;
    unsigned char *entry = end = code + functions * PAGE;
    for (long at = 0; at < functions; at++)
        emit_jump('\xe8', code + at * PAGE + at % 64 * LINE);
    emit("\xc3", 1);
    return execute(bytes, entry, steps / functions);
}

/* Jumps from each of 256 lines to the next. */
static long jumps(long steps)
{
    const long lines = 256;
    size_t bytes = (lines + 1) * LINE;
    make_room(bytes);
    for (long at = 0; at < lines; at++) {
        end = code + at * LINE;
        emit_jump('\xe9', code + (at + 1) * LINE);
    }
    code[lines * LINE] = 0xc3;
    return execute(bytes, code, steps / lines);
}

/* A cycle through `places` places that are `stride` bytes apart, in an order without a pattern. */
static char *cycle(size_t places, size_t stride)
{
    char *all = aligned_alloc(PAGE, places * stride);
    if (!all)
        exit(1);
    /* A linear congruence of full period: places is a power of two. */
    size_t at = 0;
    for (size_t step = 0; step < places; step++) {
        size_t to = (at * 1664525 + 1013904223) % places;
        *(char **)(all + at * stride) = all + to * stride;
        at = to;
    }
    return all;
}

static long chase(long steps, size_t places, size_t stride)
{
    char *at = cycle(places, stride);
    while (steps--)
        at = *(char **)at;
    return (long)at & 1;
}

static long divider(long steps)
{
    unsigned long sum = 1;
    while (steps--) {
        unsigned long low = 123456789, high = 0, by = 17;
        __asm__ volatile("divq %2" : "+a"(low), "+d"(high) : "r"(by) : "cc");
        sum += low;
    }
    return (long)sum;
}

static long chain(long steps)
{
    double x = 1.0, by = 1.0000001;
    while (steps--)
        __asm__ volatile("mulsd %1, %0\n mulsd %1, %0\n mulsd %1, %0\n mulsd %1, %0"
                         : "+x"(x) : "x"(by));
    return x > 2;
}

static long port(long steps)
{
    long a = 3, b = 5, c = 7, d = 9, by = 3;
    while (steps--)
        __asm__ volatile("imulq %4, %0\n imulq %4, %1\n imulq %4, %2\n imulq %4, %3"
                         : "+r"(a), "+r"(b), "+r"(c), "+r"(d) : "r"(by) : "cc");
    return a + b + c + d;
}

int main(int count, char **words)
{
    if (count < 3)
        return 2;
    const char *cause = words[1];
    long steps = atol(words[2]), result;
    if (!strcmp(cause, "random"))
        result = random_branches(steps);
    else if (!strcmp(cause, "indirect"))
        result = indirect_jumps(steps);
    else if (!strcmp(cause, "returns"))
        result = returns(steps);
    else if (!strcmp(cause, "straight"))
        result = straight_code(steps);
    else if (!strcmp(cause, "pages"))
        result = pages_of_code(steps);
    else if (!strcmp(cause, "jumps"))
        result = jumps(steps);
    else if (!strcmp(cause, "second"))
        result = chase(steps, 8192, LINE);
    else if (!strcmp(cause, "tlb"))
        result = chase(steps, 1024, PAGE + LINE);
    else if (!strcmp(cause, "memory"))
        result = chase(steps, 131072, LINE);
    else if (!strcmp(cause, "divider"))
        result = divider(steps);
    else if (!strcmp(cause, "chain"))
        result = chain(steps);
    else if (!strcmp(cause, "port"))
        result = port(steps);
    else
        return 2;
    printf("%s: %ld\n", cause, result);
    return 0;
}
