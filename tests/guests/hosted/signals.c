/* Signals, handlers and masks: prints the same here as under Linux. */
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

#include "must.h"

/* The sum of handled signals, nested handlers and their most, the last code, the sum in another
 * thread. */
static volatile sig_atomic_t handled, depth, deepest, code, handled_in_thread;
static void *volatile address;
static sigjmp_buf resume;
static char *page;

static void set_handler(int signal, void (*handler)(int, siginfo_t *, void *), int flags)
{
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags};
    sigemptyset(&action.sa_mask);
    MUST(sigaction(signal, &action, NULL) == 0);
}

/* Changes registers that a handler may change. Its signal is blocked while it runs. */
static void note(int signal, siginfo_t *info, void *context)
{
    (void)context;
    if (++depth > deepest)
        deepest = depth;
    handled += signal;
    code = info->si_code;
    if (signal == SIGUSR1 && handled < 100)
        raise(SIGUSR1);
    __asm__ volatile("xorps %%xmm0, %%xmm0\n xorps %%xmm7, %%xmm7\n fldz\n fstp %%st(0)" 
                     ::: "xmm0", "xmm7");
    depth--;
}

static void jump_out(int signal, siginfo_t *info, void *context)
{
    (void)context;
    handled = signal;
    code = info->si_code;
    address = info->si_addr;
    siglongjmp(resume, 1);
}

/* Skips the faulting instruction, UD2 or one of three bytes. */
static void skip_instruction(int signal, siginfo_t *info, void *context)
{
    ucontext_t *state = context;
    handled = signal;
    code = info->si_code;
    address = info->si_addr;
    state->uc_mcontext.gregs[REG_RIP] += signal == SIGILL ? 2 : 3;
    state->uc_mcontext.gregs[REG_RBX] = 0x1234567;
}

static void make_writable(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)context;
    handled++;
    MUST(info->si_addr == page + 8 && mprotect(page, 4096, PROT_READ | PROT_WRITE) == 0);
}

static void registers(void)
{
    double a = 1.5, b = 2.5;
    unsigned long r[6] = {1, 2, 3, 4, 5, 6};
    set_handler(SIGUSR2, note, 0);
    handled = 0;
    /* The signal comes during a system call, which may change RAX, RCX and R11 alone. */
    __asm__ volatile("movsd %1, %%xmm0\n movsd %2, %%xmm7\n"
                     "mov $11, %%r8\n mov $12, %%r9\n mov $13, %%r12\n mov $14, %%r15\n"
                     "mov $15, %%rbx\n"
                     "mov $39, %%eax\n syscall\n mov %%rax, %%rdi\n mov $12, %%esi\n"
                     "mov $62, %%eax\n syscall\n"
                     "movsd %%xmm0, %1\n movsd %%xmm7, %2\n"
                     "mov %%r8, (%0)\n mov %%r9, 8(%0)\n mov %%r12, 16(%0)\n mov %%r15, 24(%0)\n"
                     "mov %%rbx, 32(%0)\n"
                     :
                     : "r"(r), "m"(a), "m"(b)
                     : "rax", "rbx", "rcx", "rdi", "rsi", "r8", "r9", "r11", "r12", "r15", "xmm0",
                       "xmm7", "memory");
    printf("signals: %d, %lu %lu %lu %lu %lu, %.1f %.1f\n", handled, r[0], r[1], r[2], r[3], r[4],
           a, b);
}

static void faults(void)
{
    volatile int zero = 0;
    volatile char *volatile unmapped = (char *)24;
    set_handler(SIGSEGV, jump_out, SA_NODEFER);
    set_handler(SIGFPE, jump_out, SA_NODEFER);
    set_handler(SIGBUS, jump_out, 0);
    if (!sigsetjmp(resume, 1))
        *unmapped = 1;
    printf("signals: %d, code %d, address %p\n", handled, code, address);
    page = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(page != MAP_FAILED);
    if (!sigsetjmp(resume, 1))
        page[4097] = 1;
    printf("signals: %d, code %d, offset %ld\n", handled, code, (char *)address - page);
    if (!sigsetjmp(resume, 1))
        printf("%d\n", 1000 / zero);
    printf("signals: %d, code %d\n", handled, code);
    if (!sigsetjmp(resume, 1))
        __asm__ volatile("cli");
    printf("signals: %d, code %d, address %p\n", handled, code, address);
    if (!sigsetjmp(resume, 1))
        *(volatile char *)0x8000000000000000 = 1;
    printf("signals: %d, code %d, address %p\n", handled, code, address);
    set_handler(SIGILL, skip_instruction, 0);
    unsigned long rbx = 1;
    __asm__ volatile("ud2" : "+b"(rbx));
    printf("signals: %d, code %d, %#lx\n", handled, code, rbx);
    set_handler(SIGTRAP, note, 0);
    handled = 0;
    __asm__ volatile("int3");
    printf("signals: %d, code %d\n", handled, code);
    handled = 0;
    set_handler(SIGSEGV, make_writable, 0);
    page[8] = 7;
    printf("signals: %d, %d\n", handled, page[8]);
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
    set_handler(SIGSEGV, jump_out, SA_ONSTACK);
    handled = 0;
    if (!sigsetjmp(resume, 1))
        overflow(0);
    MUST(sigaltstack(NULL, &old) == 0 && old.ss_sp == other && old.ss_flags == 0);
    stack.ss_size = 100;
    MUST(sigaltstack(&stack, NULL) < 0 && errno == ENOMEM);
    stack.ss_flags = SS_DISABLE;
    MUST(sigaltstack(&stack, &old) == 0 && sigaltstack(NULL, &old) == 0 &&
         old.ss_flags == SS_DISABLE);
    printf("signals: %d when the stack was full\n", handled);
}

static void masks(void)
{
    sigset_t set, old;
    siginfo_t info;
    struct timespec soon = {0, 30000000};

    set_handler(SIGUSR1, note, 0);
    set_handler(SIGUSR2, note, 0);
    handled = depth = deepest = 0;
    raise(SIGUSR1);
    printf("signals: %d, %d deep\n", handled, deepest);
    set_handler(SIGUSR1, note, SA_NODEFER);
    handled = 50;
    raise(SIGUSR1);
    printf("signals: %d, %d deep\n", handled, deepest);

    handled = 200;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGUSR2);
    MUST(sigprocmask(SIG_BLOCK, &set, &old) == 0 && !sigismember(&old, SIGUSR1));
    raise(SIGUSR1);
    raise(SIGUSR1);
    kill(getpid(), SIGUSR2);
    MUST(handled == 200 && sigpending(&old) == 0 && sigismember(&old, SIGUSR1) &&
         sigismember(&old, SIGUSR2));
    MUST(sigtimedwait(&set, &info, &soon) == SIGUSR1 && info.si_signo == SIGUSR1 &&
         info.si_pid == getpid());
    sigemptyset(&old);
    MUST(sigsuspend(&old) < 0 && errno == EINTR && handled == 200 + SIGUSR2 && code == SI_USER);
    MUST(sigtimedwait(&set, &info, &soon) < 0 && errno == EAGAIN);
    raise(SIGUSR2);
    MUST(sigprocmask(SIG_UNBLOCK, &set, NULL) == 0 && handled == 200 + 2 * SIGUSR2 &&
         code == SI_TKILL);

    MUST(signal(SIGUSR1, SIG_IGN) != SIG_ERR && raise(SIGUSR1) == 0);
    raise(SIGCHLD);
    raise(SIGWINCH);
    /* Ignoring a signal discards a pending one. */
    MUST(sigemptyset(&set) == 0 && sigaddset(&set, SIGUSR1) == 0 && sigaddset(&set, SIGCHLD) == 0);
    MUST(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
    set_handler(SIGUSR1, note, 0);
    MUST(raise(SIGUSR1) == 0 && kill(getpid(), SIGUSR1) == 0 && raise(SIGCHLD) == 0);
    MUST(sigpending(&old) == 0 && sigismember(&old, SIGUSR1) && sigismember(&old, SIGCHLD));
    MUST(signal(SIGUSR1, SIG_IGN) != SIG_ERR && signal(SIGCHLD, SIG_DFL) != SIG_ERR);
    MUST(sigpending(&old) == 0 && !sigismember(&old, SIGUSR1) && !sigismember(&old, SIGCHLD));
    MUST(sigprocmask(SIG_UNBLOCK, &set, NULL) == 0);
    set_handler(SIGUSR2, note, SA_RESETHAND);
    raise(SIGUSR2);
    struct sigaction now;
    MUST(sigaction(SIGUSR2, NULL, &now) == 0 && now.sa_handler == SIG_DFL);
    MUST(sigaction(SIGKILL, &now, NULL) < 0 && errno == EINVAL);
    printf("signals: %d\n", handled);
}

static void note_time(int signal, siginfo_t *info, void *context)
{
    (void)info, (void)context;
    handled += signal;
}

static void times(void)
{
    struct itimerval often = {{0, 20000}, {0, 20000}}, none = {{0, 0}, {0, 0}};
    struct timespec long_time = {2, 0}, left = {0, 0};

    set_handler(SIGALRM, note_time, SA_RESTART);
    handled = 0;
    MUST(setitimer(ITIMER_REAL, &often, NULL) == 0);
    /* SA_RESTART does not restart a sleep. */
    MUST(nanosleep(&long_time, &left) < 0 && errno == EINTR && left.tv_sec == 1);
    while (handled < 3 * SIGALRM)
        pause();
    MUST(poll(NULL, 0, 2000) < 0 && errno == EINTR && poll(NULL, 0, -1) < 0 && errno == EINTR);
    left = long_time;
    MUST(syscall(SYS_ppoll, NULL, 0, &left, NULL, 8) < 0 && errno == EINTR && left.tv_sec == 1);
    /* An ignored signal ends no wait. */
    sigset_t child, nothing;
    sigemptyset(&nothing);
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    MUST(sigprocmask(SIG_BLOCK, &child, NULL) == 0 && raise(SIGCHLD) == 0);
    int before = handled;
    MUST(sigsuspend(&nothing) < 0 && errno == EINTR && handled > before);
    MUST(sigprocmask(SIG_UNBLOCK, &child, NULL) == 0);
    struct itimerval wrong = {{0, 0}, {0, 2000000}};
    often.it_interval.tv_usec = 7;
    MUST(setitimer(ITIMER_REAL, &wrong, &often) < 0 && errno == EINVAL &&
         often.it_interval.tv_usec == 7);
    MUST(setitimer(ITIMER_REAL, &none, &often) == 0 && often.it_interval.tv_usec == 20000);
    /* The mask of ppoll lets a pending signal through, and ends with the call. */
    MUST(sigprocmask(SIG_SETMASK, NULL, &child) == 0 && sigaddset(&child, SIGALRM) == 0);
    MUST(sigprocmask(SIG_SETMASK, &child, NULL) == 0 && raise(SIGALRM) == 0);
    before = handled;
    struct timespec short_time = {0, 20000000};
    MUST(ppoll(NULL, 0, &short_time, NULL) == 0 && handled == before);
    MUST(ppoll(NULL, 0, &long_time, &nothing) < 0 && errno == EINTR && handled == before + SIGALRM);
    MUST(raise(SIGALRM) == 0 && handled == before + SIGALRM);
    MUST(ppoll(NULL, 0, &short_time, &child) == 0 && handled == before + SIGALRM);
    MUST(sigdelset(&child, SIGALRM) == 0 && sigprocmask(SIG_SETMASK, &child, NULL) == 0);
    MUST(handled == before + 2 * SIGALRM);
    MUST(alarm(100) == 0 && alarm(0) == 100);
    printf("signals: %d of time\n", handled >= 3 * SIGALRM);
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_int started;

static void note_in_thread(int signal, siginfo_t *info, void *context)
{
    (void)info, (void)context;
    handled_in_thread += signal;
    address = (void *)pthread_self();
}

static void *lock_and_unlock(void *argument)
{
    started++;
    /* A wait for a lock is restarted after a signal. */
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    return argument;
}

static void *wait_for_signal(void *argument)
{
    sigset_t *set = argument;
    int signal = 0;
    started++;
    MUST(sigwait(set, &signal) == 0);
    return (void *)(long)signal;
}

static void in_threads(void)
{
    pthread_t thread;
    sigset_t set;
    void *result;

    for (int restart = 0; restart < 2; restart++) {
        set_handler(SIGUSR1, note_in_thread, restart ? SA_RESTART : 0);
        started = handled_in_thread = 0;
        address = NULL;
        pthread_mutex_lock(&mutex);
        MUST(pthread_create(&thread, NULL, lock_and_unlock, NULL) == 0);
        while (!started)
            usleep(20000);
        usleep(20000);
        MUST(pthread_kill(thread, SIGUSR1) == 0);
        while (!handled_in_thread)
            usleep(20000);
        MUST(address == (void *)thread);
        pthread_mutex_unlock(&mutex);
        MUST(pthread_join(thread, NULL) == 0);
    }
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    MUST(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
    started = 0;
    MUST(pthread_create(&thread, NULL, wait_for_signal, &set) == 0);
    while (!started)
        usleep(20000);
    MUST(kill(getpid(), SIGUSR2) == 0 && pthread_join(thread, &result) == 0);
    printf("signals: %d in a thread, %ld waited for\n", handled_in_thread, (long)result);
}

/* Of two threads that wait for a signal, the one that it is sent to gets it. */
static void in_the_second(void)
{
    pthread_t threads[2];
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    started = 0;
    for (int i = 0; i < 2; i++) {
        MUST(pthread_create(&threads[i], NULL, wait_for_signal, &set) == 0);
        while (started <= i)
            usleep(20000);
        usleep(20000);
    }
    for (int i = 1; i >= 0; i--) {
        void *result;
        MUST(pthread_kill(threads[i], SIGUSR2) == 0 && pthread_join(threads[i], &result) == 0);
        printf("signals: %ld waited for\n", (long)result);
    }
}

/* A handler starts with an initial FPU, whatever it interrupted. */
static void float_trap(int signal, siginfo_t *info, void *context)
{
    unsigned short control;

    (void)signal, (void)context;
    code = info->si_code;
    /* Raises a pending exception of the interrupted code, if the FPU still has it. */
    __asm__ volatile("fld1\n fstp %%st(0)\n fwait\n fnstcw %0" : "=m"(control));
    handled = control;
    siglongjmp(resume, 1);
}

static void floats(void)
{
    static const unsigned short traps[] = {0x37f & ~4, 0x37f & ~1};
    const double zero = 0, numbers[] = {1, 0};

    set_handler(SIGFPE, float_trap, 0);
    for (int i = 0; i < 2; i++) {
        handled = 0;
        if (sigsetjmp(resume, 1) == 0)
            __asm__ volatile("fninit\n fldcw %0\n fldl %1\n fdivl %2\n fwait\n fstp %%st(0)"
                             :
                             : "m"(traps[i]), "m"(numbers[i]), "m"(zero));
        __asm__ volatile("fninit");
        printf("signals: float code %d, control word %#x\n", code, (unsigned)handled);
    }
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
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
