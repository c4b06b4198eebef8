/* Calls on threads: prints the same here as under Linux, in any order of the threads.
 * `threads COUNT` */
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

#include "must.h"

#define MAX_THREADS 64

static _Thread_local unsigned long local = 40;
static _Thread_local char large_local[5000];
static unsigned long guarded, sums[MAX_THREADS];
static double roots[MAX_THREADS];
static pid_t tids[MAX_THREADS];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;
static pthread_rwlock_t readers = PTHREAD_RWLOCK_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static atomic_int once_calls, detached;
static pthread_key_t key;
static atomic_ulong key_sum;

static void only_once(void)
{
    once_calls++;
}

static void destroy_key(void *value)
{
    key_sum += (unsigned long)value;
}

/* Counts under a lock, in thread-local memory, in floating point, and in allocated memory. */
static void *count_in_thread(void *argument)
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

static void *detach_and_end(void *argument)
{
    (void)argument;
    detached++;
    return NULL;
}

/* A queue of four places between two producers and three consumers. */
static struct {
    pthread_mutex_t mutex;
    pthread_cond_t filled, emptied;
    int places[4], used, made, taken;
    long sum;
} queue = {
    PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER, {0}, 0, 0, 0, 0,
};

static void *produce(void *argument)
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

static void *consume(void *argument)
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

/* Timeouts and locks that are held. */
static void wait_with_timeouts(void)
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

static void *pause_for_ever(void *argument)
{
    while (argument == NULL)
        pause();
    return argument;
}

/* Waits while the only pending timer has a signal that is ignored. Under Linux it waits for
 * ever. */
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

static atomic_int calls_soon;

static void *unmap(void *set)
{
    while (!calls_soon)
        sched_yield();
    MUST(munmap(set, 4096) == 0);
    return NULL;
}

/* Sets the affinity of a child that runs on another CPU. It unmaps the argument before the child
 * has been switched out, so the call fails when it is repeated. */
static void unmap_argument(void)
{
    static const char words[] = "threads\0spin";
    int late = 0;
    long program = syscall(PROGRAM_LOAD, words, sizeof words, 0, 0);

    MUST(program > 0 && syscall(PROGRAM_RUN, program) == 0);
    for (int i = 0; i < 8 && !late; i++) {
        pthread_t thread;
        struct timespec pause = {0, 15000000};
        nanosleep(&pause, NULL);
        unsigned long *set =
            mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        MUST(set != MAP_FAILED);
        *set = ~0ul;
        calls_soon = 0;
        MUST(pthread_create(&thread, NULL, unmap, set) == 0);
        calls_soon = 1;
        late = syscall(SYS_sched_setaffinity, program, 8, set) < 0;
        /* On a slow host the child may have ended. */
        MUST(!late || errno == EFAULT || errno == ESRCH);
        MUST(pthread_join(thread, NULL) == 0);
    }
    MUST(syscall(PROGRAM_WAIT, program) == 0);
    printf("threads: let be, %s\n", late ? "and waited for" : "as it had come at once");
}

/* Runs for several turns of the scheduler. */
static void spin(void)
{
    struct timespec start = in_milliseconds(CLOCK_MONOTONIC, 200), now;
    do
        now = in_milliseconds(CLOCK_MONOTONIC, 0);
    while (now.tv_sec < start.tv_sec ||
           (now.tv_sec == start.tv_sec && now.tv_nsec < start.tv_nsec));
}

int main(int argc, char **argv)
{
    static const struct {
        const char *word;
        void (*run)(void);
    } others[] = {{"stuck", stuck}, {"let-be", unmap_argument}, {"spin", spin}};
    for (unsigned i = 0; argc > 1 && i < sizeof others / sizeof *others; i++)
        if (strcmp(argv[1], others[i].word) == 0) {
            others[i].run();
            return 0;
        }
    unsigned long count = argc > 1 ? strtoul(argv[1], NULL, 10) : 4, results = 0, all = 0;
    pthread_t threads[MAX_THREADS];
    pthread_attr_t small;
    double root = 0;

    MUST(count > 1 && count <= MAX_THREADS);
    MUST(pthread_barrier_init(&barrier, NULL, (unsigned)count) == 0);
    MUST(pthread_key_create(&key, destroy_key) == 0);
    MUST(pthread_attr_init(&small) == 0 && pthread_attr_setstacksize(&small, 64 << 10) == 0);
    for (unsigned long i = 0; i < count; i++)
        MUST(pthread_create(&threads[i], i % 2 ? &small : NULL, count_in_thread, (void *)i) == 0);
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
    printf("threads: %d once, %lu of keys, mine is %lu\n", once_calls, (unsigned long)key_sum,
           local);

    for (int i = 0; i < 5; i++)
        MUST(pthread_create(&threads[i], NULL, i < 2 ? produce : consume, NULL) == 0);
    for (int i = 0; i < 5; i++)
        MUST(pthread_join(threads[i], NULL) == 0);
    printf("threads: %d made, %d taken, %ld in all\n", queue.made, queue.taken, queue.sum);

    wait_with_timeouts();
    for (int i = 0; i < 200; i++) {
        MUST(pthread_create(&threads[0], &small, detach_and_end, NULL) == 0);
        MUST(pthread_detach(threads[0]) == 0);
    }
    while (detached < 200)
        sched_yield();
    printf("threads: %d came and went\n", detached);
    /* One endless thread is cancelled, and one ends with the program. */
    void *result;
    MUST(pthread_create(&threads[0], NULL, pause_for_ever, NULL) == 0);
    MUST(pthread_create(&threads[1], NULL, pause_for_ever, NULL) == 0);
    MUST(pthread_cancel(threads[0]) == 0 && pthread_join(threads[0], &result) == 0);
    MUST(result == PTHREAD_CANCELED);
    MUST(getpid() == (pid_t)syscall(SYS_gettid));
    printf("threads: done\n");
    return 3;
}
