/* Scheduling attributes, barriers, mutexes that the kernel hands over, and limits: the kernel keeps
 * what it is given, as Linux does. Clocks: the kernel and the vDSO show one time. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "must.h"

/* `struct sched_attr` of sched_setattr(2), first version. */
struct attributes {
    unsigned size, policy;
    unsigned long flags;
    int nice;
    unsigned priority;
    unsigned long times[3];
};

/* Linux's uapi/linux/sched.h, membarrier.h and futex.h, which not every C library brings. */
#define RESET_ON_FORK 0x40000000
enum { QUERY = 0, GLOBAL = 1, PRIVATE = 8, SYNC_CORE = 32, UNKNOWN_BARRIER = 1 << 20 };
enum { WAIT = 0, WAKE_OP = 5, LOCK_PI = 6, UNLOCK_PI = 7, TRYLOCK_PI = 8 };
enum { OP_SET, OP_ADD, OP_OR, OP_ANDN, OP_XOR, OP_UNKNOWN = 7, OP_SHIFT = 8 };
enum { CMP_EQ, CMP_NE, CMP_LT, CMP_LE, CMP_GT, CMP_GE };
#define WAKE_CODE(op, operand, cmp, compared)                                                      \
    ((unsigned)(op) << 28 | (unsigned)(cmp) << 24 | ((operand)&0xfff) << 12 | ((compared)&0xfff))

static int policy_of_new_thread, nice_of_new_thread;

static void *look(void *argument)
{
    policy_of_new_thread = syscall(SYS_sched_getscheduler, 0);
    nice_of_new_thread = getpriority(PRIO_PROCESS, 0);
    return argument;
}

static void run(void *(*function)(void *), void *argument)
{
    pthread_t thread;
    MUST(!pthread_create(&thread, NULL, function, argument));
    MUST(!pthread_join(thread, NULL));
}

/* By system calls: musl's functions refuse, as policies are of threads under Linux. */
static void policies(void)
{
    struct sched_param param = {.sched_priority = 0};
    struct timespec turn;
    MUST(syscall(SYS_sched_getscheduler, 0) == SCHED_OTHER);
    MUST(syscall(SYS_sched_getscheduler, getpid()) == SCHED_OTHER);
    MUST(!syscall(SYS_sched_setscheduler, 0, SCHED_BATCH | RESET_ON_FORK, &param));
    MUST(syscall(SYS_sched_getscheduler, 0) == (SCHED_BATCH | RESET_ON_FORK));
    MUST(!syscall(SYS_sched_setparam, 0, &param) && !syscall(SYS_sched_getparam, 0, &param));
    MUST(param.sched_priority == 0);
    run(look, NULL);
    MUST(policy_of_new_thread == SCHED_BATCH);
    MUST(!syscall(SYS_sched_rr_get_interval, 0, &turn) && turn.tv_sec == 0);
    param.sched_priority = 1;
    FAILS(syscall(SYS_sched_setscheduler, 0, SCHED_OTHER, &param), EINVAL);
    FAILS(syscall(SYS_sched_setparam, 0, &param), EINVAL);
    FAILS(syscall(SYS_sched_setscheduler, 0, 99, &param), EINVAL);
    FAILS(syscall(SYS_sched_setscheduler, 0, SCHED_OTHER, NULL), EINVAL);
    FAILS(syscall(SYS_sched_setscheduler, -1, SCHED_OTHER, &param), EINVAL);
    FAILS(syscall(SYS_sched_getscheduler, 12345678), ESRCH);
    MUST(sched_get_priority_min(SCHED_FIFO) == 1 && sched_get_priority_max(SCHED_RR) == 99);
    MUST(sched_get_priority_min(SCHED_OTHER) == 0 && sched_get_priority_max(SCHED_IDLE) == 0);
    FAILS(sched_get_priority_max(99), EINVAL);
    /* Not every user may have a real-time policy. */
    param.sched_priority = 7;
    if (!syscall(SYS_sched_setscheduler, 0, SCHED_FIFO, &param)) {
        param.sched_priority = 0;
        MUST(!syscall(SYS_sched_getparam, 0, &param) && param.sched_priority == 7);
        MUST(!syscall(SYS_sched_rr_get_interval, 0, &turn) && turn.tv_nsec == 0);
        param.sched_priority = 0;
        FAILS(syscall(SYS_sched_setparam, 0, &param), EINVAL);
    } else {
        MUST(errno == EPERM);
    }
    param.sched_priority = 0;
    MUST(!syscall(SYS_sched_setscheduler, 0, SCHED_OTHER, &param));
}

static void nice_values(void)
{
    struct attributes is = {.size = sizeof is};
    MUST(getpriority(PRIO_PROCESS, 0) == 0);
    MUST(!setpriority(PRIO_PROCESS, 0, 3) && getpriority(PRIO_PROCESS, getpid()) == 3);
    MUST(syscall(SYS_getpriority, PRIO_PROCESS, 0) == 17);
    MUST(nice(2) == 5);
    MUST(!syscall(SYS_sched_getattr, 0, &is, sizeof is, 0));
    MUST(is.size >= 48 && is.policy == SCHED_OTHER && is.nice == 5 && is.priority == 0);
    is = (struct attributes){.size = sizeof is, .policy = SCHED_BATCH, .flags = 1, .nice = 100};
    MUST(!syscall(SYS_sched_setattr, 0, &is, 0));
    memset(&is, 0, sizeof is);
    MUST(!syscall(SYS_sched_getattr, 0, &is, sizeof is, 0));
    MUST(is.policy == SCHED_BATCH && is.flags == 1 && is.nice == 19);
    run(look, NULL);
    MUST(policy_of_new_thread == SCHED_BATCH && nice_of_new_thread == 19);
    FAILS(syscall(SYS_sched_getattr, 0, &is, 8, 0), EINVAL);
    FAILS(syscall(SYS_sched_setattr, 0, &is, 1), EINVAL);
    is.size = 40;
    FAILS(syscall(SYS_sched_setattr, 0, &is, 0), E2BIG);
    FAILS(getpriority(9, 0), EINVAL);
    FAILS(getpriority(PRIO_PROCESS, 12345678), ESRCH);
    /* Class 2, best effort, and priority 6. */
    MUST(!syscall(SYS_ioprio_set, 1, 0, 2 << 13 | 6));
    MUST(syscall(SYS_ioprio_get, 1, 0) == (2 << 13 | 6));
}

static void barriers(void)
{
    int all = syscall(SYS_membarrier, QUERY, 0, 0);
    MUST(all & GLOBAL && all & PRIVATE && all & SYNC_CORE);
    MUST(!syscall(SYS_membarrier, GLOBAL, 0, 0));
    for (int kind = PRIVATE; kind <= SYNC_CORE; kind *= 4) {
        FAILS(syscall(SYS_membarrier, kind, 0, 0), EPERM);
        MUST(!syscall(SYS_membarrier, kind * 2, 0, 0));
        MUST(!syscall(SYS_membarrier, kind, 0, 0));
    }
    FAILS(syscall(SYS_membarrier, QUERY, 2, 0), EINVAL);
    FAILS(syscall(SYS_membarrier, UNKNOWN_BARRIER, 0, 0), EINVAL);
}

static pthread_mutex_t mutex;
static int inside, handled;

static void handle(int signal) { handled += signal == SIGUSR1; }

static void *enter(void *argument)
{
    for (int i = 0; i < 200; i++) {
        MUST(!pthread_mutex_lock(&mutex));
        int before = inside;
        sched_yield();
        inside = before + 1;
        MUST(!pthread_mutex_unlock(&mutex));
    }
    return argument;
}

static void *enter_once(void *argument)
{
    MUST(!pthread_mutex_lock(&mutex));
    inside++;
    MUST(!pthread_mutex_unlock(&mutex));
    return argument;
}

static void *try_and_time_out(void *argument)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    MUST(pthread_mutex_trylock(&mutex) == EBUSY);
    MUST(pthread_mutex_timedlock(&mutex, &now) == ETIMEDOUT);
    return argument;
}

static int begun;

static void *die(void *argument)
{
    MUST(!pthread_mutex_lock(&mutex));
    __atomic_store_n(&begun, 1, __ATOMIC_RELAXED);
    usleep(*(int *)argument);
    return NULL;
}

static void new_mutex(int kind, int robust)
{
    pthread_mutexattr_t how;
    MUST(!pthread_mutexattr_init(&how));
    MUST(!pthread_mutexattr_setprotocol(&how, PTHREAD_PRIO_INHERIT));
    MUST(!pthread_mutexattr_settype(&how, kind));
    MUST(!pthread_mutexattr_setrobust(&how, robust));
    MUST(!pthread_mutex_init(&mutex, &how));
}

/* Threads that contend for the mutex, a signal to one that waits, a timeout, and an owner's end. */
static void mutexes(void)
{
    pthread_t threads[4];
    new_mutex(PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_STALLED);
    for (int i = 0; i < 4; i++)
        MUST(!pthread_create(&threads[i], NULL, enter, NULL));
    for (int i = 0; i < 4; i++)
        MUST(!pthread_join(threads[i], NULL));
    MUST(inside == 800);
    signal(SIGUSR1, handle);
    MUST(!pthread_mutex_lock(&mutex));
    run(try_and_time_out, NULL);
    MUST(!pthread_create(&threads[0], NULL, enter_once, NULL));
    usleep(30000);
    MUST(!pthread_kill(threads[0], SIGUSR1));
    while (!__atomic_load_n(&handled, __ATOMIC_RELAXED))
        usleep(1000);
    MUST(inside == 800 && !pthread_mutex_unlock(&mutex));
    MUST(!pthread_join(threads[0], NULL) && inside == 801);
    new_mutex(PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_STALLED);
    MUST(!pthread_mutex_lock(&mutex) && pthread_mutex_lock(&mutex) == EDEADLK);
    MUST(!pthread_mutex_unlock(&mutex) && pthread_mutex_unlock(&mutex) == EPERM);
    /* The owner ends before another thread waits, and while it waits. */
    for (int late = 0; late <= 50000; late += 50000) {
        begun = 0;
        new_mutex(PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ROBUST);
        MUST(!pthread_create(&threads[0], NULL, die, &late));
        while (!__atomic_load_n(&begun, __ATOMIC_RELAXED))
            usleep(1000);
        MUST(late || !pthread_join(threads[0], NULL));
        MUST(pthread_mutex_lock(&mutex) == EOWNERDEAD);
        MUST(!pthread_mutex_consistent(&mutex) && !pthread_mutex_unlock(&mutex));
        MUST(!pthread_mutex_lock(&mutex) && !pthread_mutex_unlock(&mutex));
        MUST(!late || !pthread_join(threads[0], NULL));
    }
}

static unsigned words[2];

static long futex(unsigned *word, int what, unsigned value, long fourth, unsigned *other,
                  unsigned third)
{
    return syscall(SYS_futex, word, what, value, fourth, other, third);
}

static void *wait_at(void *word)
{
    __atomic_store_n(&begun, 1, __ATOMIC_RELAXED);
    futex(word, WAIT, 0, 0, NULL, 0);
    return NULL;
}

static void words_of_futexes(void)
{
    unsigned *other = words + 1;
    pthread_t thread;
    *other = 5;
    MUST(!futex(words, WAKE_OP, 1, 1, other, WAKE_CODE(OP_ADD, 3, CMP_EQ, 5)) && *other == 8);
    MUST(!futex(words, WAKE_OP, 1, 1, other, WAKE_CODE(OP_ANDN, 8, CMP_LT, -1)) && *other == 0);
    MUST(!futex(words, WAKE_OP, 1, 1, other, WAKE_CODE(OP_SET | OP_SHIFT, 31, CMP_NE, 0)));
    MUST(*other == 1u << 31);
    MUST(!futex(words, WAKE_OP, 1, 1, other, WAKE_CODE(OP_XOR, -1, CMP_GE, 0)));
    MUST(*other == ~(1u << 31));
    *other = 0;
    begun = 0;
    MUST(!pthread_create(&thread, NULL, wait_at, other));
    while (!__atomic_load_n(&begun, __ATOMIC_RELAXED))
        usleep(1000);
    usleep(30000);
    MUST(futex(words, WAKE_OP, 1, 1, other, WAKE_CODE(OP_OR, 4, CMP_LE, 0)) == 1);
    MUST(!pthread_join(thread, NULL) && *other == 4);
    FAILS(futex(words, WAKE_OP, 1, 1, other, WAKE_CODE(OP_UNKNOWN, 0, CMP_GT, 0)), ENOSYS);
    /* What a mutex' word says is checked. */
    words[0] = 0;
    MUST(!futex(words, TRYLOCK_PI, 0, 0, NULL, 0) && words[0] == (unsigned)getpid());
    FAILS(futex(words, LOCK_PI, 0, 0, NULL, 0), EDEADLK);
    MUST(!futex(words, UNLOCK_PI, 0, 0, NULL, 0) && words[0] == 0);
    FAILS(futex(words, UNLOCK_PI, 0, 0, NULL, 0), EPERM);
    words[0] = 12345678;
    FAILS(futex(words, LOCK_PI, 0, 0, NULL, 0), ESRCH);
}

static void limits(void)
{
    struct rlimit was, less, is;
    MUST(!getrlimit(RLIMIT_NOFILE, &was) && was.rlim_cur > 10);
    less = (struct rlimit){8, was.rlim_max};
    MUST(!setrlimit(RLIMIT_NOFILE, &less) && !getrlimit(RLIMIT_NOFILE, &is));
    MUST(is.rlim_cur == 8 && is.rlim_max == was.rlim_max);
    FAILS(dup2(0, 8), EBADF);
    while (dup(0) >= 0)
        ;
    MUST(errno == EMFILE);
    MUST(!setrlimit(RLIMIT_NOFILE, &was) && dup2(0, 8) == 8);
    less = (struct rlimit){2, 1};
    FAILS(setrlimit(RLIMIT_NOFILE, &less), EINVAL);
    FAILS(getrlimit(99, &is), EINVAL);
    MUST(!prlimit(getpid(), RLIMIT_CORE, NULL, &was));
    less = (struct rlimit){0, was.rlim_max};
    MUST(!prlimit(0, RLIMIT_CORE, &less, &is) && is.rlim_cur == was.rlim_cur);
    umask(027);
    MUST(umask(01777) == 027 && umask(022) == 0777);
    MUST(personality(0xffffffff) == PER_LINUX);
}

static long nanoseconds(struct timespec time)
{
    MUST(time.tv_nsec >= 0 && time.tv_nsec < 1000000000);
    return time.tv_sec * 1000000000 + time.tv_nsec;
}

static long time_now(void)
{
    return time(NULL);
}

/* Each clock by the kernel and by the C library, which asks the vDSO, in turns: time goes forwards
 * and is the same time. */
static void clocks(void)
{
    static const clockid_t all[] = {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW,
                                    CLOCK_BOOTTIME};
    struct timespec time;
    struct timeval date;
    long last;
    MUST(getauxval(AT_SYSINFO_EHDR) != 0);
    for (unsigned clock = 0; clock < sizeof all / sizeof *all; clock++) {
        last = 0;
        for (int turn = 0; turn < 20; turn++) {
            MUST(turn % 2 ? !clock_gettime(all[clock], &time)
                          : !syscall(SYS_clock_gettime, all[clock], &time));
            MUST(nanoseconds(time) >= last && (!turn || nanoseconds(time) < last + 1000000000));
            last = nanoseconds(time);
        }
    }
    MUST(!clock_gettime(CLOCK_REALTIME, &time) && !gettimeofday(&date, NULL));
    last = nanoseconds(time) / 1000;
    MUST(date.tv_sec * 1000000 + date.tv_usec >= last && date.tv_usec < 1000000);
    MUST(date.tv_sec * 1000000 + date.tv_usec < last + 1000000);
    MUST(time.tv_sec <= date.tv_sec && labs((long)(time_now() - date.tv_sec)) <= 1);
    MUST(!clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time) && nanoseconds(time) > 0);
    FAILS(clock_gettime(4711, &time), EINVAL);
    FAILS(wait(NULL), ECHILD);
}

int main(void)
{
    policies();
    nice_values();
    barriers();
    mutexes();
    words_of_futexes();
    limits();
    clocks();
    puts("sched: done");
    return 0;
}
