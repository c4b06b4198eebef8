/* Signals with values in their order, signals read from descriptors, timers of timer_create(2), and
 * clocks of CPU time: prints what the kernel answers, as Linux answers. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static int order[16], handled;

/* Prints what a call returned, and its error. */
static void show(const char *what, long result)
{
    if (result < 0)
        printf("%s: %s\n", what, strerrorname_np(errno));
    else
        printf("%s: %ld\n", what, result);
}

static void note(int signal, siginfo_t *info, void *context)
{
    (void)context;
    order[handled++] = signal * 100 + info->si_value.sival_int;
}

static void handle(int signal)
{
    struct sigaction action = {.sa_sigaction = note, .sa_flags = SA_SIGINFO};
    sigfillset(&action.sa_mask);
    sigaction(signal, &action, NULL);
}

static sigset_t set_of(int one, int other)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, one);
    sigaddset(&set, other);
    return set;
}

/* Real-time signals are delivered as often as they were sent, in order; others once. */
static void values_in_order(void)
{
    sigset_t set = set_of(SIGRTMIN + 1, SIGUSR1), pending;
    sigaddset(&set, SIGRTMIN);
    sigprocmask(SIG_BLOCK, &set, NULL);
    handle(SIGRTMIN);
    handle(SIGRTMIN + 1);
    handle(SIGUSR1);
    for (int i = 1; i <= 3; i++) {
        sigqueue(getpid(), SIGRTMIN + 1, (union sigval){.sival_int = i});
        sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = 10 + i});
        sigqueue(getpid(), SIGUSR1, (union sigval){.sival_int = 20 + i});
    }
    pthread_sigqueue(pthread_self(), SIGRTMIN, (union sigval){.sival_int = 30});
    sigpending(&pending);
    printf("pending %d %d\n", sigismember(&pending, SIGRTMIN), sigismember(&pending, SIGUSR2));
    siginfo_t info;
    int signal = sigwaitinfo(&set, &info);
    printf("waited %d: code %d, own %d, value %d\n", signal, info.si_code,
           info.si_pid == getpid() && info.si_uid == getuid(), info.si_value.sival_int);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    for (int i = 0; i < handled; i++)
        printf("handled %d\n", order[i]);
    show("bad signal", sigqueue(getpid(), 65, (union sigval){0}));
    show("no signal", sigqueue(getpid(), 0, (union sigval){0}));
}

/* Signals are discarded with their values when they are ignored. */
static void ignored_while_pending(void)
{
    sigset_t set = set_of(SIGRTMIN, SIGRTMIN), pending;
    sigprocmask(SIG_BLOCK, &set, NULL);
    for (int i = 0; i < 2; i++)
        sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = i});
    signal(SIGRTMIN, SIG_IGN);
    sigpending(&pending);
    printf("ignored: pending %d\n", sigismember(&pending, SIGRTMIN));
    handle(SIGRTMIN);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static void *send_later(void *argument)
{
    usleep(30000);
    kill(getpid(), SIGUSR2);
    return argument;
}

/* A descriptor has the signals of its set, for poll(2) and epoll(7) too. */
static void signals_from_descriptors(void)
{
    sigset_t set = set_of(SIGUSR2, SIGRTMIN + 2);
    sigprocmask(SIG_BLOCK, &set, NULL);
    int fd = signalfd(-1, &set, SFD_NONBLOCK);
    struct signalfd_siginfo infos[4];
    show("empty", read(fd, infos, sizeof infos));
    show("short", read(fd, infos, 100));
    struct pollfd polled = {fd, POLLIN, 0};
    show("poll", poll(&polled, 1, 0));
    sigqueue(getpid(), SIGRTMIN + 2, (union sigval){.sival_int = 7});
    sigqueue(getpid(), SIGRTMIN + 2, (union sigval){.sival_int = 8});
    raise(SIGUSR2);
    show("poll", poll(&polled, 1, 0));
    printf("events %#x\n", (unsigned)polled.revents);
    long count = read(fd, infos, sizeof infos) / (long)sizeof infos[0];
    for (int i = 0; i < count; i++)
        printf("read %u: code %d, own %d, value %d\n", infos[i].ssi_signo, infos[i].ssi_code,
               infos[i].ssi_pid == (unsigned)getpid(), infos[i].ssi_int);
    int epoll = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
    pthread_t thread;
    pthread_create(&thread, NULL, send_later, NULL);
    printf("epoll: %d", epoll_wait(epoll, &event, 1, 10000));
    printf(" %d\n", read(fd, infos, sizeof infos) == sizeof infos[0]);
    pthread_join(thread, NULL);
    /* Another set for the same descriptor. */
    set = set_of(SIGRTMIN + 3, SIGRTMIN + 3);
    sigprocmask(SIG_BLOCK, &set, NULL);
    printf("again: %d\n", signalfd(fd, &set, 0) == fd);
    raise(SIGRTMIN + 3);
    printf("again: %d\n", read(fd, infos, sizeof infos) == sizeof infos[0]);
    show("no signals", signalfd(epoll, &set, 0));
    show("no descriptor", signalfd(99, &set, 0));
    show("bad flags", signalfd(-1, &set, 1));
    close(epoll);
    close(fd);
}

static void by_thread(union sigval value)
{
    __atomic_store_n((int *)value.sival_ptr, 1, __ATOMIC_RELEASE);
}

/* Timers that send a signal, call a function in a thread, or only count. */
static void timers(void)
{
    sigset_t set = set_of(SIGRTMIN + 4, SIGALRM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    timer_t timer, other, none;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN + 4};
    event.sigev_value.sival_int = 42;
    show("create", timer_create(CLOCK_MONOTONIC, &event, &timer));
    event.sigev_notify = SIGEV_NONE;
    show("create", timer_create(CLOCK_REALTIME, &event, &none));
    show("create", timer_create(CLOCK_REALTIME, NULL, &other));
    struct itimerspec once = {{0, 0}, {0, 20000000}}, often = {{0, 10000000}, {0, 10000000}}, is;
    /* Other programs may run for any time before the next call: the first timer is a long one. */
    struct itimerspec late = {{0, 0}, {1000, 0}};
    timer_settime(timer, 0, &late, NULL);
    timer_gettime(timer, &is);
    printf("left: %d %ld\n", is.it_value.tv_sec > 0 && is.it_value.tv_sec <= 1000,
           is.it_interval.tv_nsec);
    timer_settime(timer, 0, &once, NULL);
    siginfo_t info;
    printf("waited %d:", sigwaitinfo(&set, &info));
    printf(" code %d, value %d, overruns %d\n", info.si_code, info.si_value.sival_int,
           info.si_overrun);
    timer_gettime(timer, &is);
    printf("over: %ld %ld\n", is.it_value.tv_sec, is.it_value.tv_nsec);
    /* The default event is SIGALRM. */
    timer_settime(other, 0, &once, NULL);
    show("waited", sigwaitinfo(&set, &info));
    /* Expirations while the signal is pending are overruns of it. */
    timer_settime(timer, 0, &often, NULL);
    usleep(200000);
    sigset_t one = set_of(SIGRTMIN + 4, SIGRTMIN + 4);
    printf("waited %d:", sigwaitinfo(&one, &info));
    printf(" overruns %d %d\n", info.si_overrun > 5, timer_getoverrun(timer) == info.si_overrun);
    struct itimerspec never = {{0, 0}, {0, 0}}, before;
    timer_settime(timer, 0, &never, &before);
    printf("before: %ld\n", before.it_interval.tv_nsec);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    struct itimerspec at = {{0, 0}, {now.tv_sec - 1, 0}};
    timer_settime(other, TIMER_ABSTIME, &at, NULL);
    /* The timer before may have expired once more until it was off. */
    sigset_t alarm = set_of(SIGALRM, SIGALRM);
    printf("past: %d\n", sigwaitinfo(&alarm, NULL) == SIGALRM);
    timer_settime(none, 0, &often, NULL);
    timer_gettime(none, &is);
    printf("none: %d\n", is.it_value.tv_nsec > 0);
    /* The timer of the thread below gets the number of one whose signal is pending. */
    timer_settime(timer, 0, &once, NULL);
    sigset_t pending;
    do
        sigpending(&pending);
    while (!sigismember(&pending, SIGRTMIN + 4));
    show("delete", timer_delete(timer) | timer_delete(other) | timer_delete(none));
    show("delete again", timer_delete(other));
    int done = 0;
    event.sigev_notify = SIGEV_THREAD;
    event.sigev_value.sival_ptr = &done;
    event.sigev_notify_function = by_thread;
    event.sigev_notify_attributes = NULL;
    printf("thread: %d", timer_create(CLOCK_MONOTONIC, &event, &timer));
    timer_settime(timer, 0, &once, NULL);
    while (!__atomic_load_n(&done, __ATOMIC_ACQUIRE))
        usleep(1000);
    printf(" %d\n", timer_delete(timer));
    /* Linux discards the signal of the deleted timer from 6.13 on. */
    const struct timespec at_once = {0, 0};
    sigtimedwait(&one, NULL, &at_once);
    show("bad clock", syscall(SYS_timer_create, 12345, NULL, &timer));
    event.sigev_signo = 99;
    event.sigev_notify = SIGEV_SIGNAL;
    show("bad signal", timer_create(CLOCK_MONOTONIC, &event, &timer));
}

static long nanoseconds(clockid_t clock)
{
    struct timespec time;
    return clock_gettime(clock, &time) ? -1 : time.tv_sec * 1000000000 + time.tv_nsec;
}

static clockid_t of_main;

/* Spins for 20 ms in which the main thread, which waits, has no time. Without a limit: the CPU may
 * be taken away for any time while the main thread still runs. */
static void *spin(void *argument)
{
    long main_had = -1, start = 0;
    do {
        long main_has = nanoseconds(of_main);
        if (main_has != main_had) {
            main_had = main_has;
            start = nanoseconds(CLOCK_THREAD_CPUTIME_ID);
        }
    } while (nanoseconds(CLOCK_THREAD_CPUTIME_ID) < start + 20000000);
    *(long *)argument = nanoseconds(CLOCK_THREAD_CPUTIME_ID);
    return NULL;
}

/* Time on CPUs is counted for each thread and for the program. */
static void clocks_of_threads(void)
{
    pthread_t thread;
    int status = pthread_getcpuclockid(pthread_self(), &of_main);
    long all = nanoseconds(CLOCK_PROCESS_CPUTIME_ID), own = nanoseconds(CLOCK_THREAD_CPUTIME_ID);
    long other = 0;
    pthread_create(&thread, NULL, spin, &other);
    pthread_join(thread, NULL);
    long own_after = nanoseconds(CLOCK_THREAD_CPUTIME_ID);
    long all_after = nanoseconds(CLOCK_PROCESS_CPUTIME_ID);
    printf("other %d, all %d\n", other >= 20000000,
           all_after - all >= own_after - own + 20000000);
    clockid_t of_program;
    status |= clock_getcpuclockid(getpid(), &of_program);
    printf("ids: %d %d %d\n", status, nanoseconds(of_main) >= own_after,
           nanoseconds(of_program) >= all_after);
    struct timespec step;
    show("resolution", clock_getres(of_main, &step));
    printf("%ld ns, no program %d\n", step.tv_nsec,
           clock_getcpuclockid(12345678, &of_program) == ESRCH);
    show("bad clock", nanoseconds((clockid_t)(~12345678u << 3 | 2)));
}

static volatile int expired[NSIG];

static void count(int signal) { expired[signal]++; }

static int is_off(const struct itimerspec *timer)
{
    return timer->it_value.tv_sec == 0 && timer->it_value.tv_nsec == 0;
}

/* Timers of CPU time run while the program does, not while it sleeps. */
static void timers_of_cpu_time(void)
{
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR2};
    struct itimerval often = {{0, 20000}, {0, 20000}}, once = {{0, 0}, {0, 30000}}, is;
    struct itimerspec soon = {{0, 0}, {0, 50000000}}, past = {{0, 0}, {0, 1}}, left;
    timer_t timer, of_thread;
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPROF, count), signal(SIGVTALRM, count);
    signal(SIGUSR2, count), signal(SIGUSR1, count);
    show("create", timer_create(CLOCK_PROCESS_CPUTIME_ID, &event, &timer));
    event.sigev_signo = SIGUSR1;
    show("create", timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &of_thread));
    long start = nanoseconds(CLOCK_PROCESS_CPUTIME_ID);
    show("set", setitimer(ITIMER_PROF, &often, NULL) | setitimer(ITIMER_VIRTUAL, &once, NULL));
    show("set", timer_settime(timer, 0, &soon, NULL));
    usleep(100000);
    /* The CPU may be taken away for any time before and after the sleep. */
    long had = nanoseconds(CLOCK_PROCESS_CPUTIME_ID) - start;
    printf("asleep: %d %d %d\n", expired[SIGPROF] > had / 20000000,
           expired[SIGVTALRM] > had / 30000000, expired[SIGUSR2] > had / 50000000);
    show("set", timer_settime(of_thread, TIMER_ABSTIME, &past, NULL));
    /* Linux counts by its ticks, and user time apart: how long this takes is not known. */
    while (expired[SIGPROF] < 5 || !expired[SIGVTALRM] || !expired[SIGUSR2] || !expired[SIGUSR1])
        ;
    printf("awake: %d %d %d\n", expired[SIGVTALRM], expired[SIGUSR2], expired[SIGUSR1]);
    show("get", getitimer(ITIMER_PROF, &is));
    printf("%ld us, left %d\n", (long)is.it_interval.tv_usec, is.it_value.tv_usec > 0);
    show("get", getitimer(ITIMER_VIRTUAL, &is));
    printf("left %ld us\n", (long)is.it_value.tv_usec);
    show("get", timer_gettime(timer, &left));
    printf("off %d\n", is_off(&left));
    is.it_value.tv_usec = is.it_interval.tv_usec = 0;
    show("set", setitimer(ITIMER_PROF, &is, &often));
    printf("before %ld us\n", (long)often.it_interval.tv_usec);
    show("delete", timer_delete(timer) | timer_delete(of_thread));
    show("bad timer", setitimer(3, &often, NULL));
}

static int used[2];

/* Uses a descriptor, after which the kernel looks again at what other threads wait for, and signals
 * such a thread before it has run. */
static void *use_and_signal(void *to)
{
    char byte = 0;
    usleep(50000);
    if (write(used[1], &byte, 1) == 1 && read(used[0], &byte, 1) == 1)
        pthread_kill(*(pthread_t *)to, SIGUSR1);
    return NULL;
}

/* A handler ends a poll(2) that the kernel was about to make again. */
static void interrupted_retry(void)
{
    int empty[2];
    pthread_t self = pthread_self(), other;
    signal(SIGUSR1, count);
    show("pipes", pipe(used) | pipe(empty));
    struct pollfd waits = {.fd = empty[0], .events = POLLIN};
    pthread_create(&other, NULL, use_and_signal, &self);
    show("poll", poll(&waits, 1, 1000));
    pthread_join(other, NULL);
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    values_in_order();
    ignored_while_pending();
    signals_from_descriptors();
    timers();
    clocks_of_threads();
    timers_of_cpu_time();
    interrupted_retry();
    show("capability", prctl(PR_CAPBSET_READ, 0));
    show("no capability", prctl(PR_CAPBSET_READ, 99));
    puts("queued: done");
    return 0;
}
