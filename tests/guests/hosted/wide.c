/* AVX registers over system calls, turns, handlers and forged signal frames: prints the same here
 * as under Linux. Without AVX it checks SSE registers and the legacy frame. `wide SEED` */
#define _GNU_SOURCE
#include <cpuid.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#include "must.h"

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif
#define REGISTERS 16
#define MAGIC 0x46505853u
#define END 0x46505845u
#define SOFTWARE 464
#define HEADER 512

struct wide { unsigned char byte[REGISTERS][32]; };

struct software { uint32_t magic, with_end; uint64_t components; uint32_t bytes; };

static int has_avx;
static uint32_t avx_at, area_bytes;
static uint64_t state;
static atomic_uint progress[2];
static volatile sig_atomic_t handled, segvs;
static void (*volatile change)(ucontext_t *, unsigned char *);
static sigjmp_buf out;

static unsigned char next(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned char)(state >> 56);
}

static struct wide pattern(void)
{
    struct wide w;
    for (int i = 0; i < REGISTERS; i++)
        for (int j = 0; j < 32; j++)
            w.byte[i][j] = has_avx || j < 16 ? next() : 0;
    return w;
}

#define EACH(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)
#define LOAD_YMM(n) "vmovdqu 32*" #n "(%[from]), %%ymm" #n "\n"
#define STORE_YMM(n) "vmovdqu %%ymm" #n ", 32*" #n "(%[to])\n"
#define LOAD_XMM(n) "movdqu 32*" #n "(%[from]), %%xmm" #n "\n"
#define STORE_XMM(n) "movdqu %%xmm" #n ", 32*" #n "(%[to])\n"
#define ALL_XMM                                                                                    \
    "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",       \
        "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"
#define BETWEEN(code, ...)                                                                         \
    do {                                                                                           \
        if (has_avx)                                                                               \
            __asm__ volatile(EACH(LOAD_YMM) code EACH(STORE_YMM) "vzeroupper" __VA_ARGS__);        \
        else                                                                                       \
            __asm__ volatile(EACH(LOAD_XMM) code EACH(STORE_XMM) __VA_ARGS__);                     \
    } while (0)

/* Loads the registers, makes a system call, and returns the registers after it. */
static struct wide over_call(const struct wide *from, long number, long a, long b)
{
    struct wide to = {0};
    BETWEEN("syscall\n", : "+a"(number)
            : [from] "r"(from), [to] "r"(&to), "D"(a), "S"(b)
            : "rcx", "r11", "memory", ALL_XMM);
    return to;
}

/* The same, until a word has another value. */
static struct wide over_wait(const struct wide *from, volatile void *word, unsigned old)
{
    struct wide to = {0};
    BETWEEN("1: cmpl %[old], (%[word])\n je 1b\n", :
            : [from] "r"(from), [to] "r"(&to), [word] "r"(word), [old] "r"(old)
            : "memory", ALL_XMM);
    return to;
}

static int same(const struct wide *a, const struct wide *b) { return !memcmp(a, b, sizeof *a); }

/* A value whose upper halves are zero. */
static struct wide lower(struct wide w)
{
    for (int i = 0; i < REGISTERS; i++)
        memset(w.byte[i] + 16, 0, 16);
    return w;
}

static void clobber(void)
{
    struct wide junk = pattern();
    over_call(&junk, SYS_getppid, 0, 0);
    if (has_avx)
        __asm__ volatile("vpcmpeqd %%xmm1, %%xmm1, %%xmm1\n vinsertf128 $1, %%xmm1, %%ymm1, %%ymm1\n"
                         "vmovdqa %%ymm1, %%ymm9" ::: ALL_XMM);
}

static void set_handler(int signal, void (*handler)(int, siginfo_t *, void *), int flags)
{
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags};
    MUST(sigemptyset(&action.sa_mask) == 0 && sigaction(signal, &action, NULL) == 0);
}

/* Checks the frame, and that a handler starts with an initial state. */
static void check_frame(ucontext_t *context, unsigned char *area)
{
    struct software said;
    uint32_t mxcsr, end;
    memcpy(&said, area + SOFTWARE, sizeof said);
    __asm__ volatile("stmxcsr %0" : "=m"(mxcsr));
    MUST(mxcsr == 0x1f80 && (uintptr_t)area % 64 == 0);
    if (!area_bytes) {
        MUST(said.magic == 0 && !(context->uc_flags & 1));
        return;
    }
    memcpy(&end, area + said.bytes, sizeof end);
    MUST(said.magic == MAGIC && said.with_end == said.bytes + 4 && said.bytes >= 576);
    MUST((said.components & 3) == 3 && end == END && context->uc_flags & 1);
    MUST(!has_avx || (said.components & 4 && said.bytes >= avx_at + 256));
    MUST((area[HEADER] & 3) == 3 && getauxval(AT_MINSIGSTKSZ) >= said.bytes + 440);
}

static void change_frame(int signal, siginfo_t *info, void *context)
{
    ucontext_t *c = context;
    (void)signal, (void)info;
    handled++;
    check_frame(c, (unsigned char *)c->uc_mcontext.fpregs);
    if (change)
        change(c, (unsigned char *)c->uc_mcontext.fpregs);
    clobber();
}

static void jump_out(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)info, (void)context;
    segvs++;
    siglongjmp(out, 1);
}

/* Returns from a handler by a frame that was changed. Returns the registers, none after SIGSEGV. */
static int returned(void (*changes)(ucontext_t *, unsigned char *), const struct wide *from,
                    struct wide *to)
{
    change = changes;
    segvs = 0;
    if (!sigsetjmp(out, 1))
        *to = over_call(from, SYS_kill, getpid(), SIGUSR1);
    return segvs == 0;
}

static void set_registers(ucontext_t *c, unsigned char *area)
{
    (void)c;
    memset(area + 160 + 3 * 16, 0x33, 16);
    if (has_avx) {
        memset(area + avx_at + 3 * 16, 0x44, 16);
        area[HEADER] |= 4;
    }
}

#define FIELD(type, at) (*(type *)(area + (at)))
#define CHANGE(name, what)                                                                         \
    static void name(ucontext_t *c, unsigned char *area)                                           \
    {                                                                                              \
        (void)c, (void)area;                                                                       \
        what;                                                                                      \
    }
CHANGE(nothing, )
CHANGE(bad_magic, FIELD(uint32_t, SOFTWARE) ^= 1)
CHANGE(bad_with_end, FIELD(uint32_t, SOFTWARE + 4) = 600)
CHANGE(huge, FIELD(uint32_t, SOFTWARE + 16) = 0x7fffffff)
CHANGE(tiny, FIELD(uint32_t, SOFTWARE + 16) = 512)
CHANGE(bad_end, FIELD(uint32_t, FIELD(uint32_t, SOFTWARE + 16)) ^= 1)
CHANGE(without_avx, FIELD(uint64_t, SOFTWARE + 8) &= ~4ull)
CHANGE(absent_avx, FIELD(uint64_t, HEADER) &= ~4ull)
CHANGE(absent, FIELD(uint64_t, HEADER) = 0)
CHANGE(no_area, c->uc_mcontext.fpregs = NULL)
CHANGE(unknown_component, FIELD(uint64_t, HEADER) |= 1ull << 60)
CHANGE(compacted_by_halves, FIELD(uint64_t, HEADER + 8) = 7)
CHANGE(reserved_bytes, FIELD(uint64_t, HEADER + 16) = 1)
CHANGE(bad_mxcsr, FIELD(uint32_t, 24) = 0xffffffff)
CHANGE(bad_legacy_mxcsr, FIELD(uint32_t, 24) = 0xffff1f80; FIELD(uint32_t, SOFTWARE) = 0)
CHANGE(kernel_area, c->uc_mcontext.fpregs = (void *)0xffff800000000000)

static unsigned char *edge;

/* An area that ends behind its legacy part, or that is not aligned. */
CHANGE(cut, memcpy(edge - 512, area, 512); c->uc_mcontext.fpregs = (void *)(edge - 512))
CHANGE(shifted, memcpy(edge - 8192 + 16, area, FIELD(uint32_t, SOFTWARE + 4));
       c->uc_mcontext.fpregs = (void *)(edge - 8192 + 16))

static void forged(void)
{
    static void (*const legacy[])(ucontext_t *, unsigned char *) = {
        bad_magic, bad_with_end, huge, tiny, bad_end, without_avx, absent_avx};
    static void (*const faults[])(ucontext_t *, unsigned char *) = {
        unknown_component, compacted_by_halves, reserved_bytes, cut, shifted};
    struct wide from = pattern(), to, zero = {0};
    edge = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(edge != MAP_FAILED && munmap(edge + 12288, 4096) == 0);
    edge += 12288;
    set_handler(SIGSEGV, jump_out, 0);
    MUST(returned(nothing, &from, &to) && same(&from, &to));
    struct wide changed = from;
    memset(changed.byte[3], 0x33, 16);
    if (has_avx)
        memset(changed.byte[3] + 16, 0x44, 16);
    MUST(returned(set_registers, &from, &to) && same(&changed, &to));
    MUST(returned(no_area, &from, &to) && same(&zero, &to));
    MUST(!returned(bad_mxcsr, &from, &to) && !returned(bad_legacy_mxcsr, &from, &to));
    MUST(!returned(kernel_area, &from, &to));
    struct wide halves = lower(from);
    for (size_t i = 0; area_bytes && i < sizeof legacy / sizeof *legacy; i++)
        MUST(returned(legacy[i], &from, &to) && same(&halves, &to));
    for (size_t i = 0; area_bytes && i < sizeof faults / sizeof *faults; i++) {
        MUST(!returned(faults[i], &from, &to));
        MUST(returned(nothing, &from, &to) && same(&from, &to));
    }
    if (area_bytes)
        MUST(returned(absent, &from, &to) && same(&zero, &to));
    printf("wide: forged frames\n");
}

static void system_calls(void)
{
    const long numbers[] = {SYS_getpid, SYS_sched_yield, SYS_getppid, SYS_gettid};
    for (int i = 0; i < 200; i++) {
        struct wide from = pattern(), to = over_call(&from, numbers[i % 4], 0, 0);
        MUST(same(&from, &to));
    }
    printf("wide: system calls\n");
}

/* Two threads whose registers differ, which yield and wait for each other's turn. */
static void *take_turns(void *argument)
{
    unsigned me = (unsigned)(uintptr_t)argument;
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    for (unsigned i = 0; i < 200; i++) {
        pthread_mutex_lock(&mutex);
        struct wide from = pattern();
        pthread_mutex_unlock(&mutex);
        progress[me]++;
        struct wide to = over_call(&from, SYS_sched_yield, 0, 0);
        MUST(same(&from, &to));
        /* Until the timer has ended this turn. */
        if (i % 100 == 50 && me == 0) {
            to = over_wait(&from, &progress[1], progress[1]);
            MUST(same(&from, &to));
        }
    }
    progress[me] += 1000;
    while (me == 1 && progress[0] < 1000)
        progress[1]++;
    return NULL;
}

static void turns(void)
{
    pthread_t threads[2];
    for (uintptr_t i = 0; i < 2; i++)
        MUST(pthread_create(&threads[i], NULL, take_turns, (void *)i) == 0);
    for (int i = 0; i < 2; i++)
        MUST(pthread_join(threads[i], NULL) == 0);
    printf("wide: turns of threads\n");
}

#define CHILD(load, store)                                                                         \
    __asm__ volatile(EACH(load) "syscall\n test %%rax, %%rax\n jnz 1f\n" EACH(store)               \
                     "xor %%edi, %%edi\n mov $60, %%eax\n syscall\n ud2\n 1:\n"                   \
                     : "+a"(number)                                                                \
                     : [from] "r"(&from), [to] "r"(&child), "D"(flags), "S"(stack + sizeof stack), \
                       "d"(NULL), "r"(word_at)                                                     \
                     : "rcx", "r11", "memory", ALL_XMM)

/* A new thread has the registers of the one that makes it. */
static void inheritance(void)
{
    static _Alignas(16) unsigned char stack[4096];
    static struct wide child;
    static atomic_uint word = 1;
    struct wide from = pattern();
    long number = SYS_clone;
    long flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
                 CLONE_CHILD_CLEARTID;
    register long word_at __asm__("r10") = (long)&word;
    if (has_avx)
        CHILD(LOAD_YMM, STORE_YMM);
    else
        CHILD(LOAD_XMM, STORE_XMM);
    MUST(number > 0);
    while (word)
        sched_yield();
    MUST(same(&from, &child));
    printf("wide: a new thread\n");
}

static void handlers(int flags)
{
    struct itimerval often = {{0, 2000}, {0, 2000}}, none = {{0, 0}, {0, 0}};
    struct wide from = pattern(), to;
    change = NULL;
    handled = 0;
    set_handler(SIGUSR1, change_frame, flags);
    set_handler(SIGALRM, change_frame, flags);
    for (int i = 0; i < 20; i++) {
        to = over_call(&from, SYS_kill, getpid(), SIGUSR1);
        MUST(same(&from, &to) && handled == i + 1);
    }
    MUST(setitimer(ITIMER_REAL, &often, NULL) == 0);
    for (int i = 0; i < 5; i++) {
        to = over_wait(&from, &handled, (unsigned)handled);
        MUST(same(&from, &to));
    }
    MUST(setitimer(ITIMER_REAL, &none, NULL) == 0);
    printf("wide: handlers\n");
}

static void other_stack(void)
{
    size_t bytes = getauxval(AT_MINSIGSTKSZ);
    MUST(bytes >= 440 + 512);
    stack_t stack = {.ss_size = bytes + 16384};
    stack.ss_sp = malloc(stack.ss_size);
    MUST(stack.ss_sp && sigaltstack(&stack, NULL) == 0);
    handlers(SA_ONSTACK);
    stack.ss_flags = SS_DISABLE;
    MUST(sigaltstack(&stack, NULL) == 0);
    free(stack.ss_sp);
}

int main(int argc, char **argv)
{
    unsigned a, b, c, d;
    state = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
    MUST(__get_cpuid(1, &a, &b, &c, &d));
    if (c & bit_OSXSAVE) {
        __cpuid_count(13, 0, a, area_bytes, c, d);
        __cpuid_count(1, 0, a, b, c, d);
        has_avx = (c & bit_AVX) != 0;
        __cpuid_count(13, 2, a, avx_at, c, d);
    }
    system_calls();
    turns();
    inheritance();
    handlers(0);
    other_stack();
    forged();
    printf("wide: done %s AVX\n", has_avx ? "with" : "without");
    return 0;
}
