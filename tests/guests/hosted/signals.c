/* What a program does with signals: prints the same here and under Linux. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("signals: line %d: %s (%s)\n", __LINE__, #condition, strerror(errno));          \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static volatile sig_atomic_t heard, depth, deepest, code, thread_heard;
static void *volatile address;
static sigjmp_buf back;
static char *page;

static void act(int signal, void (*handler)(int, siginfo_t *, void *), int flags)
{
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags};
    sigemptyset(&action.sa_mask);
    MUST(sigaction(signal, &action, NULL) == 0);
}

/* Changes every register that it may, and hears of no second one meanwhile. */
static void hear(int signal, siginfo_t *info, void *context)
{
    (void)context;
    if (++depth > deepest)
        deepest = depth;
    heard += signal;
    code = info->si_code;
    if (signal == SIGUSR1 && heard < 100)
        raise(SIGUSR1);
    __asm__ volatile("xorps %%xmm0, %%xmm0\n xorps %%xmm7, %%xmm7\n fldz\n fstp %%st(0)" ::: "xmm0", "xmm7");
    depth--;
}

static void jump(int signal, siginfo_t *info, void *context)
{
    (void)context;
    heard = signal;
    code = info->si_code;
    address = info->si_addr;
    siglongjmp(back, 1);
}

/* Lets the program go on behind the instruction, UD2 or one of three bytes. */
static void skip(int signal, siginfo_t *info, void *context)
{
    ucontext_t *state = context;
    heard = signal;
    code = info->si_code;
    address = info->si_addr;
    state->uc_mcontext.gregs[REG_RIP] += signal == SIGILL ? 2 : 3;
    state->uc_mcontext.gregs[REG_RBX] = 0x1234567;
}

static void allow(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)context;
    heard++;
    MUST(info->si_addr == page + 8 && mprotect(page, 4096, PROT_READ | PROT_WRITE) == 0);
}

static void registers(void)
{
    double a = 1.5, b = 2.5;
    unsigned long r[6] = {1, 2, 3, 4, 5, 6};
    act(SIGUSR2, hear, 0);
    heard = 0;
    /* The call is made between: all but RAX, RCX and R11 stay. */
    __asm__ volatile("movsd %1, %%xmm0\n movsd %2, %%xmm7\n"
                     "mov $11, %%r8\n mov $12, %%r9\n mov $13, %%r12\n mov $14, %%r15\n mov $15, %%rbx\n"
                     "mov $39, %%eax\n syscall\n mov %%rax, %%rdi\n mov $12, %%esi\n mov $62, %%eax\n syscall\n"
                     "movsd %%xmm0, %1\n movsd %%xmm7, %2\n"
                     "mov %%r8, (%0)\n mov %%r9, 8(%0)\n mov %%r12, 16(%0)\n mov %%r15, 24(%0)\n mov %%rbx, 32(%0)\n"
                     :
                     : "r"(r), "m"(a), "m"(b)
                     : "rax", "rbx", "rcx", "rdi", "rsi", "r8", "r9", "r11", "r12", "r15", "xmm0", "xmm7", "memory");
    printf("signals: %d, %lu %lu %lu %lu %lu, %.1f %.1f\n", heard, r[0], r[1], r[2], r[3], r[4], a, b);
}

static void faults(void)
{
    volatile int zero = 0;
    volatile char *volatile nowhere = (char *)24;
    act(SIGSEGV, jump, SA_NODEFER);
    act(SIGFPE, jump, SA_NODEFER);
    act(SIGBUS, jump, 0);
    if (!sigsetjmp(back, 1))
        *nowhere = 1;
    printf("signals: %d, code %d, address %p\n", heard, code, address);
    page = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(page != MAP_FAILED);
    if (!sigsetjmp(back, 1))
        page[4097] = 1;
    printf("signals: %d, code %d, offset %ld\n", heard, code, (char *)address - page);
    if (!sigsetjmp(back, 1))
        printf("%d\n", 1000 / zero);
    printf("signals: %d, code %d\n", heard, code);
    if (!sigsetjmp(back, 1))
        __asm__ volatile("cli");
    printf("signals: %d, code %d, address %p\n", heard, code, address);
    if (!sigsetjmp(back, 1))
        *(volatile char *)0x8000000000000000 = 1;
    printf("signals: %d, code %d, address %p\n", heard, code, address);
    act(SIGILL, skip, 0);
    unsigned long rbx = 1;
    __asm__ volatile("ud2" : "+b"(rbx));
    printf("signals: %d, code %d, %#lx\n", heard, code, rbx);
    act(SIGTRAP, hear, 0);
    heard = 0;
    __asm__ volatile("int3");
    printf("signals: %d, code %d\n", heard, code);
    heard = 0;
    act(SIGSEGV, allow, 0);
    page[8] = 7;
    printf("signals: %d, %d\n", heard, page[8]);
}

static int overflow(int depth)
{
    volatile char room[4096];
    room[0] = (char)depth;
    return depth < 1 << 30 ? overflow(depth + 1) + room[0] : 0;
}

static void stacks(void)
{
    static char other[65536];
    stack_t stack = {.ss_sp = other, .ss_size = sizeof other}, old;
    MUST(sigaltstack(&stack, NULL) == 0);
    act(SIGSEGV, jump, SA_ONSTACK);
    heard = 0;
    if (!sigsetjmp(back, 1))
        overflow(0);
    MUST(sigaltstack(NULL, &old) == 0 && old.ss_sp == other && old.ss_flags == 0);
    stack.ss_size = 100;
    MUST(sigaltstack(&stack, NULL) < 0 && errno == ENOMEM);
    stack.ss_flags = SS_DISABLE;
    MUST(sigaltstack(&stack, &old) == 0 && sigaltstack(NULL, &old) == 0 && old.ss_flags == SS_DISABLE);
    printf("signals: %d when the stack was full\n", heard);
}

/* Memory below a stack that handlers fill. */
static struct {
    char guard[8192], stack[16384];
} small;
static long me;

static void deeper(int signal)
{
    for (unsigned i = 0; i < sizeof small.guard; i++)
        if (small.guard[i] != 0) {
            puts("signals: below the stack");
            _exit(1);
        }
    long result = SYS_kill;
    __asm__ volatile("syscall" : "+a"(result) : "D"(me), "S"((long)signal) : "rcx", "r11", "memory");
}

static void fill(void)
{
    stack_t stack = {.ss_sp = small.stack, .ss_size = sizeof small.stack};
    struct sigaction action = {.sa_handler = deeper, .sa_flags = SA_ONSTACK | SA_NODEFER};
    MUST(sigaltstack(&stack, NULL) == 0 && sigaction(SIGUSR1, &action, NULL) == 0);
    me = getpid();
    raise(SIGUSR1);
}

static void masks(void)
{
    sigset_t set, old;
    siginfo_t info;
    struct timespec soon = {0, 30000000};

    act(SIGUSR1, hear, 0);
    act(SIGUSR2, hear, 0);
    heard = depth = deepest = 0;
    raise(SIGUSR1);
    printf("signals: %d, %d deep\n", heard, deepest);
    act(SIGUSR1, hear, SA_NODEFER);
    heard = 50;
    raise(SIGUSR1);
    printf("signals: %d, %d deep\n", heard, deepest);

    heard = 200;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGUSR2);
    MUST(sigprocmask(SIG_BLOCK, &set, &old) == 0 && !sigismember(&old, SIGUSR1));
    raise(SIGUSR1);
    raise(SIGUSR1);
    kill(getpid(), SIGUSR2);
    MUST(heard == 200 && sigpending(&old) == 0 && sigismember(&old, SIGUSR1) && sigismember(&old, SIGUSR2));
    MUST(sigtimedwait(&set, &info, &soon) == SIGUSR1 && info.si_signo == SIGUSR1 && info.si_pid == getpid());
    sigemptyset(&old);
    MUST(sigsuspend(&old) < 0 && errno == EINTR && heard == 200 + SIGUSR2 && code == SI_USER);
    MUST(sigtimedwait(&set, &info, &soon) < 0 && errno == EAGAIN);
    raise(SIGUSR2);
    MUST(sigprocmask(SIG_UNBLOCK, &set, NULL) == 0 && heard == 200 + 2 * SIGUSR2 && code == SI_TKILL);

    MUST(signal(SIGUSR1, SIG_IGN) != SIG_ERR && raise(SIGUSR1) == 0);
    raise(SIGCHLD);
    raise(SIGWINCH);
    /* Whoever ignores one from now on does not want what waits either. */
    MUST(sigemptyset(&set) == 0 && sigaddset(&set, SIGUSR1) == 0 && sigaddset(&set, SIGCHLD) == 0);
    MUST(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
    act(SIGUSR1, hear, 0);
    MUST(raise(SIGUSR1) == 0 && kill(getpid(), SIGUSR1) == 0 && raise(SIGCHLD) == 0);
    MUST(sigpending(&old) == 0 && sigismember(&old, SIGUSR1) && sigismember(&old, SIGCHLD));
    MUST(signal(SIGUSR1, SIG_IGN) != SIG_ERR && signal(SIGCHLD, SIG_DFL) != SIG_ERR);
    MUST(sigpending(&old) == 0 && !sigismember(&old, SIGUSR1) && !sigismember(&old, SIGCHLD));
    MUST(sigprocmask(SIG_UNBLOCK, &set, NULL) == 0);
    act(SIGUSR2, hear, SA_RESETHAND);
    raise(SIGUSR2);
    struct sigaction now;
    MUST(sigaction(SIGUSR2, NULL, &now) == 0 && now.sa_handler == SIG_DFL);
    MUST(sigaction(SIGKILL, &now, NULL) < 0 && errno == EINVAL);
    printf("signals: %d\n", heard);
}

static void on_time(int signal, siginfo_t *info, void *context)
{
    (void)info, (void)context;
    heard += signal;
}

static void times(void)
{
    struct itimerval often = {{0, 20000}, {0, 20000}}, none = {{0, 0}, {0, 0}};
    struct timespec long_time = {2, 0}, left = {0, 0};

    act(SIGALRM, on_time, SA_RESTART);
    heard = 0;
    MUST(setitimer(ITIMER_REAL, &often, NULL) == 0);
    /* No flag lets a sleep go on. */
    MUST(nanosleep(&long_time, &left) < 0 && errno == EINTR && left.tv_sec == 1);
    while (heard < 3 * SIGALRM)
        pause();
    MUST(poll(NULL, 0, 2000) < 0 && errno == EINTR && poll(NULL, 0, -1) < 0 && errno == EINTR);
    left = long_time;
    MUST(syscall(SYS_ppoll, NULL, 0, &left, NULL, 8) < 0 && errno == EINTR && left.tv_sec == 1);
    /* One that is ignored ends nothing. */
    sigset_t child, nothing;
    sigemptyset(&nothing);
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    MUST(sigprocmask(SIG_BLOCK, &child, NULL) == 0 && raise(SIGCHLD) == 0);
    int before = heard;
    MUST(sigsuspend(&nothing) < 0 && errno == EINTR && heard > before);
    MUST(sigprocmask(SIG_UNBLOCK, &child, NULL) == 0);
    struct itimerval wrong = {{0, 0}, {0, 2000000}};
    often.it_interval.tv_usec = 7;
    MUST(setitimer(ITIMER_REAL, &wrong, &often) < 0 && errno == EINVAL && often.it_interval.tv_usec == 7);
    MUST(setitimer(ITIMER_REAL, &none, &often) == 0 && often.it_interval.tv_usec == 20000);
    /* Another mask while it waits lets through what waits already, and goes with the waiting. */
    MUST(sigprocmask(SIG_SETMASK, NULL, &child) == 0 && sigaddset(&child, SIGALRM) == 0);
    MUST(sigprocmask(SIG_SETMASK, &child, NULL) == 0 && raise(SIGALRM) == 0);
    before = heard;
    struct timespec short_time = {0, 20000000};
    MUST(ppoll(NULL, 0, &short_time, NULL) == 0 && heard == before);
    MUST(ppoll(NULL, 0, &long_time, &nothing) < 0 && errno == EINTR && heard == before + SIGALRM);
    MUST(raise(SIGALRM) == 0 && heard == before + SIGALRM);
    MUST(ppoll(NULL, 0, &short_time, &child) == 0 && heard == before + SIGALRM);
    MUST(sigdelset(&child, SIGALRM) == 0 && sigprocmask(SIG_SETMASK, &child, NULL) == 0);
    MUST(heard == before + 2 * SIGALRM);
    MUST(alarm(100) == 0 && alarm(0) == 100);
    printf("signals: %d of time\n", heard >= 3 * SIGALRM);
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_int inside;

static void in_thread(int signal, siginfo_t *info, void *context)
{
    (void)info, (void)context;
    thread_heard += signal;
    address = (void *)pthread_self();
}

static void *locks(void *argument)
{
    inside++;
    /* A lock is waited for again after a signal. */
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    return argument;
}

static void *waits(void *argument)
{
    sigset_t *set = argument;
    int signal = 0;
    inside++;
    MUST(sigwait(set, &signal) == 0);
    return (void *)(long)signal;
}

static void in_threads(void)
{
    pthread_t thread;
    sigset_t set;
    void *result;

    for (int restart = 0; restart < 2; restart++) {
        act(SIGUSR1, in_thread, restart ? SA_RESTART : 0);
        inside = thread_heard = 0;
        address = NULL;
        pthread_mutex_lock(&mutex);
        MUST(pthread_create(&thread, NULL, locks, NULL) == 0);
        while (!inside)
            usleep(20000);
        usleep(20000);
        MUST(pthread_kill(thread, SIGUSR1) == 0);
        while (!thread_heard)
            usleep(20000);
        MUST(address == (void *)thread);
        pthread_mutex_unlock(&mutex);
        MUST(pthread_join(thread, NULL) == 0);
    }
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    MUST(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
    inside = 0;
    MUST(pthread_create(&thread, NULL, waits, &set) == 0);
    while (!inside)
        usleep(20000);
    MUST(kill(getpid(), SIGUSR2) == 0 && pthread_join(thread, &result) == 0);
    printf("signals: %d in a thread, %ld waited for\n", thread_heard, (long)result);
}

/* Of two that wait for a signal, the one that it is sent to gets it. */
static void in_the_second(void)
{
    pthread_t threads[2];
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    inside = 0;
    for (int i = 0; i < 2; i++) {
        MUST(pthread_create(&threads[i], NULL, waits, &set) == 0);
        while (inside <= i)
            usleep(20000);
        usleep(20000);
    }
    for (int i = 1; i >= 0; i--) {
        void *result;
        MUST(pthread_kill(threads[i], SIGUSR2) == 0 && pthread_join(threads[i], &result) == 0);
        printf("signals: %ld waited for\n", (long)result);
    }
}

/* A handler has an FPU of its own, whatever it interrupted. */
static void float_trap(int signal, siginfo_t *info, void *context)
{
    unsigned short control;

    (void)signal, (void)context;
    code = info->si_code;
    /* Waits for what the interrupted code has caused, if that is still there. */
    __asm__ volatile("fld1\n fstp %%st(0)\n fwait\n fnstcw %0" : "=m"(control));
    heard = control;
    siglongjmp(back, 1);
}

static void floats(void)
{
    static const unsigned short traps[] = {0x37f & ~4, 0x37f & ~1};
    const double zero = 0, numbers[] = {1, 0};

    act(SIGFPE, float_trap, 0);
    for (int i = 0; i < 2; i++) {
        heard = 0;
        if (sigsetjmp(back, 1) == 0)
            __asm__ volatile("fninit\n fldcw %0\n fldl %1\n fdivl %2\n fwait\n fstp %%st(0)"
                             :
                             : "m"(traps[i]), "m"(numbers[i]), "m"(zero));
        __asm__ volatile("fninit");
        printf("signals: float code %d, control word %#x\n", code, (unsigned)heard);
    }
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc > 1 && strcmp(argv[1], "nowhere") == 0) {
        /* No address of a program's, nor of anybody's. */
        struct sigaction action = {0};
        action.sa_handler = (void (*)(int))0x8000000000000000;
        MUST(sigaction(SIGUSR1, &action, NULL) == 0);
        raise(SIGUSR1);
        return 0;
    }
    if (argc > 1 && strcmp(argv[1], "full") == 0) {
        fill();
        printf("signals: survived\n");
        return 0;
    }
    if (argc > 1) {
        /* Ends by what its argument names. */
        printf("signals: ends by %s\n", argv[1]);
        raise(atoi(argv[1]));
        printf("signals: goes on\n");
        return 0;
    }
    registers();
    faults();
    stacks();
    masks();
    times();
    in_threads();
    in_the_second();
    floats();
    printf("signals: done\n");
    abort();
}
