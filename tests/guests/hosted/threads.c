/* What a program does with threads: prints the same here and under Linux, whatever the order in which they
 * run. `threads COUNT` */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("threads: line %d: %s (%s)\n", __LINE__, #condition, strerror(errno));          \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

#define MOST 64

static _Thread_local unsigned long local = 40;
static _Thread_local char large_local[5000];
static unsigned long guarded, sums[MOST];
static double roots[MOST];
static pid_t tids[MOST];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;
static pthread_rwlock_t readers = PTHREAD_RWLOCK_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static atomic_int onces, detached;
static pthread_key_t key;
static atomic_ulong keys_ended;

static void only_once(void)
{
    onces++;
}

static void key_ends(void *value)
{
    keys_ended += (unsigned long)value;
}

/* Counts under the lock, in thread-local memory, in floating point, in memory of its own. */
static void *counts(void *argument)
{
    unsigned long me = (unsigned long)argument;
    double root = (double)me;

    pthread_once(&once, only_once);
    pthread_setspecific(key, (void *)(me + 1));
    tids[me] = (pid_t)syscall(SYS_gettid);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < 2000; i++) {
        pthread_mutex_lock(&mutex);
        unsigned long seen = guarded;
        if (i % 100 == 0)
            sched_yield();
        guarded = seen + 1;
        pthread_mutex_unlock(&mutex);
        local += me;
        root = root / 2 + 1;
        unsigned long *own = malloc(64 + (size_t)i % 3000);
        own[0] = local;
        sums[me] += own[0];
        free(own);
    }
    large_local[4999] = (char)me;
    roots[me] = root + large_local[4999];
    pthread_rwlock_rdlock(&readers);
    pthread_rwlock_unlock(&readers);
    return (void *)(local);
}

static void *leaves(void *argument)
{
    (void)argument;
    detached++;
    return NULL;
}

/* A queue of four places between two who make and three who take. */
static struct {
    pthread_mutex_t mutex;
    pthread_cond_t filled, emptied;
    int places[4], used, made, taken;
    long sum;
} queue = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER, {0}, 0, 0, 0, 0};

static void *makes(void *argument)
{
    (void)argument;
    for (int i = 1; i <= 500; i++) {
        pthread_mutex_lock(&queue.mutex);
        while (queue.used == 4)
            pthread_cond_wait(&queue.emptied, &queue.mutex);
        queue.places[queue.used++] = i;
        queue.made++;
        pthread_cond_signal(&queue.filled);
        pthread_mutex_unlock(&queue.mutex);
    }
    return NULL;
}

static void *takes(void *argument)
{
    (void)argument;
    for (;;) {
        pthread_mutex_lock(&queue.mutex);
        while (queue.used == 0 && queue.taken < 1000)
            pthread_cond_wait(&queue.filled, &queue.mutex);
        if (queue.taken == 1000) {
            pthread_cond_broadcast(&queue.filled);
            pthread_mutex_unlock(&queue.mutex);
            return NULL;
        }
        queue.sum += queue.places[--queue.used];
        if (++queue.taken == 1000)
            pthread_cond_broadcast(&queue.filled);
        pthread_cond_signal(&queue.emptied);
        pthread_mutex_unlock(&queue.mutex);
    }
}

static struct timespec in_milliseconds(clockid_t clock, long milliseconds)
{
    struct timespec time;
    clock_gettime(clock, &time);
    time.tv_nsec += milliseconds * 1000000;
    time.tv_sec += time.tv_nsec / 1000000000;
    time.tv_nsec %= 1000000000;
    return time;
}

/* What ends by itself, and what is taken already. */
static void waits(void)
{
    pthread_mutex_t errors, timed = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutexattr_t kind;
    pthread_cond_t never = PTHREAD_COND_INITIALIZER;
    sem_t semaphore;
    struct timespec soon = in_milliseconds(CLOCK_REALTIME, 30);

    pthread_mutex_lock(&timed);
    MUST(pthread_cond_timedwait(&never, &timed, &soon) == ETIMEDOUT);
    soon = in_milliseconds(CLOCK_REALTIME, 30);
    MUST(pthread_mutex_timedlock(&timed, &soon) == ETIMEDOUT);
    MUST(pthread_mutex_trylock(&timed) == EBUSY);
    pthread_mutex_unlock(&timed);
    MUST(sem_init(&semaphore, 0, 1) == 0 && sem_wait(&semaphore) == 0);
    soon = in_milliseconds(CLOCK_REALTIME, 30);
    MUST(sem_timedwait(&semaphore, &soon) < 0 && errno == ETIMEDOUT);
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&errors, &kind);
    MUST(pthread_mutex_lock(&errors) == 0 && pthread_mutex_lock(&errors) == EDEADLK);
    MUST(pthread_mutex_unlock(&errors) == 0 && pthread_mutex_unlock(&errors) == EPERM);
}

static void *sleeps(void *argument)
{
    while (argument == NULL)
        pause();
    return argument;
}

/* Its time-out is the last that could end its waiting, and does not: under Linux it waits for ever. */
static void stuck(void)
{
    struct itimerval soon = {{0, 0}, {0, 30000}};
    signal(SIGALRM, SIG_IGN);
    MUST(setitimer(ITIMER_REAL, &soon, NULL) == 0);
    pause();
    printf("threads: survived\n");
}

/* Tally's own calls: see docs/abi.md. */
#define PROGRAM_LOAD 0x7a110020
#define PROGRAM_RUN 0x7a110021
#define PROGRAM_WAIT 0x7a110022

static atomic_int asks;

static void *takes_away(void *set)
{
    while (!asks)
        sched_yield();
    MUST(munmap(set, 4096) == 0);
    return NULL;
}

/* Asks for a program that runs on another CPU, and lets it be before it has come: what the call needs goes. */
static void lets_be(void)
{
    static const char words[] = "threads\0spin";
    int late = 0;
    long program = syscall(PROGRAM_LOAD, words, sizeof words, 0, 0);

    MUST(program > 0 && syscall(PROGRAM_RUN, program) == 0);
    for (int i = 0; i < 8 && !late; i++) {
        pthread_t thread;
        struct timespec pause = {0, 15000000};
        nanosleep(&pause, NULL);
        unsigned long *set = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        MUST(set != MAP_FAILED);
        *set = ~0ul;
        asks = 0;
        MUST(pthread_create(&thread, NULL, takes_away, set) == 0);
        asks = 1;
        late = syscall(SYS_sched_setaffinity, program, 8, set) < 0;
        MUST(!late || errno == EFAULT);
        MUST(pthread_join(thread, NULL) == 0);
    }
    MUST(syscall(PROGRAM_WAIT, program) == 0);
    printf("threads: let be, %s\n", late ? "and waited for" : "as it had come at once");
}

/* Some turns long. */
static void spin(void)
{
    struct timespec start = in_milliseconds(CLOCK_MONOTONIC, 200), now;
    do
        now = in_milliseconds(CLOCK_MONOTONIC, 0);
    while (now.tv_sec < start.tv_sec || (now.tv_sec == start.tv_sec && now.tv_nsec < start.tv_nsec));
}

int main(int argc, char **argv)
{
    static const struct {
        const char *word;
        void (*does)(void);
    } others[] = {{"stuck", stuck}, {"let-be", lets_be}, {"spin", spin}};
    for (unsigned i = 0; argc > 1 && i < sizeof others / sizeof *others; i++)
        if (strcmp(argv[1], others[i].word) == 0) {
            others[i].does();
            return 0;
        }
    unsigned long count = argc > 1 ? strtoul(argv[1], NULL, 10) : 4, results = 0, all = 0;
    pthread_t threads[MOST];
    pthread_attr_t small;
    double root = 0;

    MUST(count > 1 && count <= MOST);
    MUST(pthread_barrier_init(&barrier, NULL, (unsigned)count) == 0);
    MUST(pthread_key_create(&key, key_ends) == 0);
    MUST(pthread_attr_init(&small) == 0 && pthread_attr_setstacksize(&small, 64 << 10) == 0);
    for (unsigned long i = 0; i < count; i++)
        MUST(pthread_create(&threads[i], i % 2 ? &small : NULL, counts, (void *)i) == 0);
    for (unsigned long i = 0; i < count; i++) {
        void *result;
        MUST(pthread_join(threads[i], &result) == 0);
        results += (unsigned long)result;
        all += sums[i];
        root += roots[i];
        MUST(tids[i] != getpid());
        for (unsigned long j = 0; j < i; j++)
            MUST(tids[i] != tids[j]);
    }
    printf("threads: %lu counted, %lu and %lu in threads, %.9f\n", guarded, results, all, root);
    printf("threads: %d once, %lu of keys, mine is %lu\n", onces, (unsigned long)keys_ended, local);

    for (int i = 0; i < 5; i++)
        MUST(pthread_create(&threads[i], NULL, i < 2 ? makes : takes, NULL) == 0);
    for (int i = 0; i < 5; i++)
        MUST(pthread_join(threads[i], NULL) == 0);
    printf("threads: %d made, %d taken, %ld in all\n", queue.made, queue.taken, queue.sum);

    waits();
    for (int i = 0; i < 200; i++) {
        MUST(pthread_create(&threads[0], &small, leaves, NULL) == 0);
        MUST(pthread_detach(threads[0]) == 0);
    }
    while (detached < 200)
        sched_yield();
    printf("threads: %d came and went\n", detached);
    /* One that never ends is cancelled, and one ends with the program. */
    void *result;
    MUST(pthread_create(&threads[0], NULL, sleeps, NULL) == 0);
    MUST(pthread_create(&threads[1], NULL, sleeps, NULL) == 0);
    MUST(pthread_cancel(threads[0]) == 0 && pthread_join(threads[0], &result) == 0);
    MUST(result == PTHREAD_CANCELED);
    MUST(getpid() == (pid_t)syscall(SYS_gettid));
    printf("threads: done\n");
    return 3;
}
