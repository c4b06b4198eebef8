/* Threads without end, that fault, that deadlock, and whose stack, thread-local storage or futex is
 * not mapped. */
#include "attack.h"
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/time.h>
#include <time.h>

/* CLONE_VM, CLONE_FS, CLONE_FILES, CLONE_SIGHAND and CLONE_THREAD. */
#define THREAD 0x10f00ul
#define CLONE_SETTLS_FLAG 0x80000ul

static pthread_mutex_t locks[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static pthread_barrier_t barrier;
static atomic_int started;

static pthread_t start(void *(*function)(void *), void *argument)
{
    pthread_t thread;
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 16384);
    MUST(pthread_create(&thread, &small, function, argument) == 0);
    return thread;
}

void futex_wait_forever(void)
{
    static int word;
    syscall(SYS_futex, &word, 0, 0, NULL, NULL, 0);
}

/* Waits with a periodic timer whose signal cannot end the wait. */
static void wait_with_timer(void)
{
    struct itimerval often = {{0, 5000}, {0, 5000}};
    MUST(setitimer(ITIMER_REAL, &often, NULL) == 0);
    futex_wait_forever();
}

static void futex_wait_with_sigalrm_ignored(void)
{
    signal(SIGALRM, SIG_IGN);
    wait_with_timer();
}

static void futex_wait_with_sigalrm_blocked(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    wait_with_timer();
}

static void *lock_both(void *argument)
{
    long first = (long)argument;
    pthread_mutex_lock(&locks[first]);
    pthread_barrier_wait(&barrier);
    pthread_mutex_lock(&locks[1 - first]);
    return NULL;
}

static void mutex_deadlock(void)
{
    pthread_barrier_init(&barrier, NULL, 2);
    start(lock_both, (void *)1);
    lock_both((void *)0);
}

static void *wait_at_barrier(void *argument)
{
    started++;
    pthread_barrier_wait(&barrier);
    return argument;
}

static void thousand_threads(void)
{
    static pthread_t threads[1000];
    pthread_barrier_init(&barrier, NULL, 1001);
    for (int i = 0; i < 1000; i++)
        threads[i] = start(wait_at_barrier, NULL);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < 1000; i++)
        pthread_join(threads[i], NULL);
    MUST(started == 1000);
}

long clone_thread(unsigned long flags, void *stack, void *tls)
{
    long result;
    register void *r10 __asm__("r10") = NULL;
    register void *r8 __asm__("r8") = tls;
    __asm__ volatile("syscall\n test %%rax, %%rax\n jnz 1f\n"
                     "2: mov $24, %%eax\n syscall\n jmp 2b\n"
                     "1:"
                     : "=a"(result)
                     : "a"(SYS_clone), "D"(THREAD | flags), "S"(stack), "d"(NULL), "r"(r10), "r"(r8)
                     : "rcx", "r11", "memory");
    return result;
}

static void clone_until_refused(void)
{
    long created = 0, result;
    while ((result = clone_thread(0, UNMAPPED, NULL)) > 0)
        created++;
    MUST(result == -EAGAIN && created > 500 && created < 2000);
}

static void *write_to(void *address)
{
    *(volatile char *volatile)address = 1;
    return NULL;
}

static void fault_in_second_thread(void)
{
    start(write_to, UNMAPPED);
    for (;;)
        sched_yield();
}

static void tls_at_invalid_address(void)
{
    clone_thread(CLONE_SETTLS_FLAG, UNMAPPED, (void *)0x7ffffffe0000);
    MUST(clone_thread(CLONE_SETTLS_FLAG, UNMAPPED, (void *)KERNEL) == -EINVAL);
    for (int i = 0; i < 10; i++)
        sched_yield();
}

static void *exit_group_7(void *argument)
{
    (void)argument;
    syscall(SYS_exit_group, 7);
    return NULL;
}

static void exit_group_in_session(void)
{
    long session = open_session("instructions,branches", 0);
    MUST(session > 0 && syscall(SESSION_START, session) == 0);
    start(exit_group_7, NULL);
    for (;;)
        ;
}

static void *sleep_30_ms(void *argument)
{
    usleep(30000);
    return argument;
}

static void first_thread_exits_first(void)
{
    start(sleep_30_ms, NULL);
    pthread_exit(NULL);
}

static void clear_tid_at_invalid_address(void)
{
    for (int i = 0; i < 2; i++) {
        syscall(SYS_set_tid_address, i ? (void *)KERNEL : UNMAPPED);
        syscall(SYS_set_robust_list, (void *)KERNEL, 24);
    }
    start(sleep_30_ms, NULL);
    syscall(SYS_exit, 0);
}

static uint64_t next_random(uint64_t *state)
{
    return *state = *state * 6364136223846793005u + 1442695040888963407u;
}

static void random_futex_calls(void)
{
    static uint32_t words[64];
    struct timespec none = {0, 0};
    uint64_t state = 1;
    for (int i = 0; i < 20000; i++) {
        uint32_t r = (uint32_t)(next_random(&state) >> 33);
        void *places[] = {&words[r % 64], UNMAPPED, (void *)KERNEL, (char *)words + r % 256,
                          (void *)(state | 3)};
        syscall(SYS_futex, places[r % 5], r >> 3 & 15, r % 7, r & 64 ? &none : places[r / 5 % 5],
                places[r / 25 % 5], r);
        /* A changed word keeps the next wait from lasting for ever. */
        if ((r >> 3 & 15) == 0 || (r >> 3 & 15) == 9)
            words[r % 64]++;
    }
}

static void random_affinity_calls(void)
{
    uint64_t state = 1;
    for (int i = 0; i < 2000; i++) {
        next_random(&state);
        syscall(SYS_sched_setaffinity, i & 1 ? 0 : state >> 60, state >> 58 & 15, &state);
        syscall(SYS_sched_getaffinity, state >> 60, state >> 55 & 24,
                i & 2 ? (void *)KERNEL : UNMAPPED);
    }
}

const struct attack thread_attacks[] = {
    ATTACK(futex_wait_forever),
    ATTACK(futex_wait_with_sigalrm_ignored),
    ATTACK(futex_wait_with_sigalrm_blocked),
    ATTACK(mutex_deadlock),
    ATTACK(thousand_threads),
    ATTACK(clone_until_refused),
    ATTACK(fault_in_second_thread),
    ATTACK(tls_at_invalid_address),
    ATTACK(exit_group_in_session),
    ATTACK(first_thread_exits_first),
    ATTACK(clear_tid_at_invalid_address),
    ATTACK(random_futex_calls),
    ATTACK(random_affinity_calls),
    {0},
};
