/* Pipes, sockets, event counters, timers, and waiting for them: prints the same here as under
 * Linux, or names the line of the first check that fails. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "must.h"

static char large[200000];

static int events_of(int fd)
{
    struct pollfd polled = {fd, POLLIN | POLLOUT | POLLRDHUP, 0};
    return poll(&polled, 1, 0) < 0 ? -1 : polled.revents;
}

static int pipes(void)
{
    int ends[2], bytes;
    char text[100];
    struct stat a;
    MUST(pipe(ends) == 0 && fstat(ends[0], &a) == 0 && S_ISFIFO(a.st_mode));
    MUST(events_of(ends[0]) == 0 && events_of(ends[1]) == POLLOUT);
    MUST(write(ends[1], "hello", 5) == 5 && events_of(ends[0]) == POLLIN);
    MUST(ioctl(ends[0], FIONREAD, &bytes) == 0 && bytes == 5);
    MUST(read(ends[0], text, 2) == 2 && read(ends[0], text + 2, 90) == 3 && memcmp(text,
         "hello", 5) == 0);
    FAILS(lseek(ends[0], 0, SEEK_SET), ESPIPE);
    FAILS(pread(ends[0], text, 1, 0), ESPIPE);
    FAILS(read(ends[1], text, 1), EBADF);
    FAILS(write(ends[0], text, 1), EBADF);
    MUST(fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0 && fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0);
    FAILS(read(ends[0], text, 1), EAGAIN);
    MUST(write(ends[1], large, sizeof large) == 65536);
    FAILS(write(ends[1], "x", 1), EAGAIN);
    MUST(events_of(ends[1]) == 0 && read(ends[0], large, sizeof large) == 65536);
    MUST(close(ends[1]) == 0 && events_of(ends[0]) == POLLHUP && read(ends[0], text, 1) == 0);
    MUST(close(ends[0]) == 0 && pipe2(ends, O_NONBLOCK | O_CLOEXEC) == 0 && close(ends[0]) == 0);
    MUST(signal(SIGPIPE, SIG_IGN) != SIG_ERR);
    FAILS(write(ends[1], "x", 1), EPIPE);
    MUST(events_of(ends[1]) == (POLLOUT | POLLERR) && close(ends[1]) == 0);
    return 0;
}

static int sockets(void)
{
    int pair[2];
    char text[10];
    MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
    MUST(send(pair[0], "ab", 2, MSG_NOSIGNAL) == 2 && write(pair[1], "c", 1) == 1);
    MUST(recv(pair[1], text, 10, 0) == 2 && read(pair[0], text, 10) == 1 && text[0] == 'c');
    FAILS(recv(pair[0], text, 1, MSG_DONTWAIT), EAGAIN);
    MUST(shutdown(pair[0], SHUT_WR) == 0 && recv(pair[1], text, 1, 0) == 0);
    MUST(events_of(pair[1]) == (POLLIN | POLLOUT | POLLRDHUP));
    FAILS(send(pair[0], "x", 1, MSG_NOSIGNAL), EPIPE);
    FAILS(send(1, "x", 1, 0), ENOTSOCK);
    MUST(close(pair[0]) == 0 && close(pair[1]) == 0);
    return 0;
}

static int counters(void)
{
    uint64_t value = 3;
    int fd = eventfd(2, EFD_NONBLOCK), semaphore = eventfd(2, EFD_SEMAPHORE | EFD_NONBLOCK);
    MUST(events_of(fd) == (POLLIN | POLLOUT) && write(fd, &value, 8) == 8);
    MUST(read(fd, &value, 8) == 8 && value == 5);
    FAILS(read(fd, &value, 8), EAGAIN);
    FAILS(read(fd, &value, 4), EINVAL);
    value = UINT64_MAX;
    FAILS(write(fd, &value, 8), EINVAL);
    value--;
    MUST(write(fd, &value, 8) == 8 && events_of(fd) == POLLIN);
    FAILS(write(fd, &value, 8), EAGAIN);
    MUST(read(semaphore, &value, 8) == 8 && value == 1 && read(semaphore, &value, 8) == 8);
    FAILS(read(semaphore, &value, 8), EAGAIN);
    MUST(close(fd) == 0 && close(semaphore) == 0);
    return 0;
}

static long milliseconds_since(const struct timespec *began)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (now.tv_sec - began->tv_sec) * 1000 + (now.tv_nsec - began->tv_nsec) / 1000000;
}

static int timers(void)
{
    struct timespec began;
    uint64_t count;
    struct itimerspec value = {{0, 20000000}, {0, 30000000}}, late = {{0, 0}, {1000, 0}}, left;
    int fd = timerfd_create(CLOCK_MONOTONIC, 0);
    MUST(fd >= 0 && timerfd_settime(fd, 0, &late, NULL) == 0 && events_of(fd) == 0);
    clock_gettime(CLOCK_MONOTONIC, &began);
    MUST(timerfd_settime(fd, 0, &value, &left) == 0 && left.it_value.tv_sec >= 900);
    MUST(timerfd_gettime(fd, &left) == 0 && left.it_value.tv_nsec > 0 &&
         left.it_interval.tv_nsec == 20000000);
    MUST(read(fd, &count, 8) == 8 && count >= 1 && milliseconds_since(&began) >= 30);
    struct pollfd polled = {fd, POLLIN, 0};
    MUST(poll(&polled, 1, 5000) == 1 && milliseconds_since(&began) >= 50);
    clock_gettime(CLOCK_REALTIME, &value.it_value);
    int dated = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK);
    MUST(timerfd_settime(dated, TFD_TIMER_ABSTIME, &value, NULL) == 0);
    MUST(read(dated, &count, 8) == 8 && count >= 1);
    value = (struct itimerspec){0};
    MUST(timerfd_settime(fd, 0, &value, NULL) == 0 && events_of(fd) == 0);
    MUST(close(fd) == 0 && close(dated) == 0);
    return 0;
}

static int waiting(void)
{
    int ends[2], fd = eventfd(0, 0);
    uint64_t one = 1;
    struct timespec began;
    fd_set in, out;
    MUST(pipe(ends) == 0);
    FD_ZERO(&in);
    FD_ZERO(&out);
    FD_SET(ends[0], &in);
    FD_SET(ends[1], &out);
    MUST(select(64, &in, &out, NULL, NULL) == 1 && !FD_ISSET(ends[0], &in) && FD_ISSET(ends[1],
         &out));
    FD_SET(ends[0], &in);
    struct timeval wait = {0, 30000};
    clock_gettime(CLOCK_MONOTONIC, &began);
    MUST(select(64, &in, NULL, NULL, &wait) == 0 && !FD_ISSET(ends[0], &in));
    MUST(milliseconds_since(&began) >= 30);
    FD_SET(60, &in);
    FAILS(select(64, &in, NULL, NULL, NULL), EBADF);

    struct epoll_event event = {EPOLLIN, {.u64 = 7}}, found[4];
    int level = epoll_create1(0), edge = epoll_create1(EPOLL_CLOEXEC);
    MUST(epoll_ctl(level, EPOLL_CTL_ADD, ends[0], &event) == 0);
    FAILS(epoll_ctl(level, EPOLL_CTL_ADD, ends[0], &event), EEXIST);
    FAILS(epoll_ctl(level, EPOLL_CTL_MOD, fd, &event), ENOENT);
    event = (struct epoll_event){EPOLLIN | EPOLLET, {.fd = fd}};
    MUST(epoll_ctl(edge, EPOLL_CTL_ADD, fd, &event) == 0);
    MUST(epoll_wait(level, found, 4, 0) == 0 && epoll_wait(edge, found, 4, 20) == 0);
    MUST(write(ends[1], "x", 1) == 1 && write(fd, &one, 8) == 8);
    MUST(epoll_wait(level, found, 4, -1) == 1 && found[0].data.u64 == 7 &&
         found[0].events == EPOLLIN);
    MUST(epoll_wait(level, found, 4, 0) == 1 && epoll_wait(edge, found, 4, 0) == 1);
    MUST(found[0].data.fd == fd && epoll_wait(edge, found, 4, 0) == 0);
    MUST(write(fd, &one, 8) == 8 && epoll_wait(edge, found, 4, 0) == 1 && events_of(edge) == 0);
    MUST(events_of(level) == POLLIN);
    event = (struct epoll_event){EPOLLIN | EPOLLONESHOT, {.u64 = 8}};
    MUST(epoll_ctl(level, EPOLL_CTL_MOD, ends[0], &event) == 0 && epoll_wait(level, found, 4,
         0) == 1);
    MUST(epoll_wait(level, found, 4, 0) == 0 && epoll_ctl(level, EPOLL_CTL_MOD, ends[0],
         &event) == 0);
    MUST(epoll_wait(level, found, 4, 0) == 1 && epoll_ctl(level, EPOLL_CTL_DEL, ends[0],
         NULL) == 0);
    FAILS(epoll_ctl(level, EPOLL_CTL_DEL, ends[0], NULL), ENOENT);
    int file = open("watched", O_CREAT | O_RDWR, 0600);
    FAILS(epoll_ctl(level, EPOLL_CTL_ADD, file, &event), EPERM);
    MUST(close(file) == 0 && unlink("watched") == 0 && close(level) == 0 && close(edge) == 0);
    MUST(close(fd) == 0 && close(ends[0]) == 0 && close(ends[1]) == 0);
    return 0;
}

/* Two threads that pass a number to and fro, by a pipe and back by an event counter. */
static int there[2], back;

static void *answer(void *unused)
{
    uint64_t value;
    (void)unused;
    while (read(there[0], &value, sizeof value) == sizeof value) {
        value++;
        if (write(back, &value, sizeof value) != sizeof value)
            break;
    }
    return NULL;
}

static int threads(void)
{
    pthread_t thread;
    uint64_t value = 0, sum = 0;
    MUST(pipe(there) == 0 && (back = eventfd(0, 0)) >= 0);
    MUST(pthread_create(&thread, NULL, answer, NULL) == 0);
    for (int i = 0; i < 200; i++) {
        value = (uint64_t)i;
        MUST(write(there[1], &value, sizeof value) == sizeof value);
        struct pollfd polled = {back, POLLIN, 0};
        if (i % 2)
            MUST(poll(&polled, 1, -1) == 1);
        MUST(read(back, &value, sizeof value) == sizeof value);
        sum += value;
    }
    MUST(close(there[1]) == 0 && pthread_join(thread, NULL) == 0);
    printf("streams: %lu\n", (unsigned long)sum);
    return 0;
}

static pthread_mutex_t robust;

static void *end_with_the_lock(void *unused)
{
    pthread_mutex_lock(&robust);
    return unused;
}

static int robust_mutexes(void)
{
    pthread_t thread;
    pthread_mutexattr_t attributes;
    MUST(pthread_mutexattr_init(&attributes) == 0);
    MUST(pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST) == 0);
    MUST(pthread_mutex_init(&robust, &attributes) == 0);
    MUST(pthread_create(&thread, NULL, end_with_the_lock, NULL) == 0);
    MUST(pthread_join(thread, NULL) == 0 && pthread_mutex_lock(&robust) == EOWNERDEAD);
    MUST(pthread_mutex_consistent(&robust) == 0 && pthread_mutex_unlock(&robust) == 0);
    return 0;
}

static void interrupt(int number) { (void)number; }

/* What `read_all` waits for before it reads, and how much it has read. */
static volatile int may_read;
static volatile size_t has_read;

static void *read_all(void *argument)
{
    static char buffer[7000];
    int fd = *(int *)argument;
    ssize_t count;
    while (!may_read)
        sched_yield();
    while (has_read < 3 * sizeof large && (count = read(fd, buffer, sizeof buffer)) > 0)
        has_read += count;
    return NULL;
}

static void *interrupt_later(void *argument)
{
    struct timespec delay = {0, 50000000};
    nanosleep(&delay, NULL);
    pthread_kill(*(pthread_t *)argument, SIGUSR2);
    return NULL;
}

/* A write that may wait writes everything, unless a handler interrupts it: then it says how
 * much. */
static int whole_writes(void)
{
    struct sigaction action = {.sa_handler = interrupt, .sa_flags = SA_RESTART};
    struct iovec parts[3] = {{large, sizeof large}, {large, sizeof large}, {large, sizeof large}};
    pthread_t reader, waker, self = pthread_self();
    int ends[2];
    MUST(pipe(ends) == 0 && sigaction(SIGUSR2, &action, NULL) == 0);
    MUST(pthread_create(&waker, NULL, interrupt_later, &self) == 0);
    ssize_t part = write(ends[1], large, sizeof large);
    MUST(part == 65536 && pthread_join(waker, NULL) == 0);

    may_read = 1;
    MUST(pthread_create(&reader, NULL, read_all, &ends[0]) == 0);
    MUST(write(ends[1], large, sizeof large - part) == (ssize_t)sizeof large - part);
    MUST(writev(ends[1], parts, 2) == 2 * (ssize_t)sizeof large);
    MUST(pthread_join(reader, NULL) == 0 && has_read == 3 * sizeof large);
    /* One that may not wait is short. */
    MUST(fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0 && write(ends[1], large, sizeof large) == 65536);
    close(ends[0]), close(ends[1]);
    return 0;
}

static int interrupted(void)
{
    struct sigaction action = {.sa_handler = interrupt};
    int ends[2];
    char byte;
    MUST(pipe(ends) == 0 && sigaction(SIGALRM, &action, NULL) == 0);
    ualarm(20000, 0);
    FAILS(read(ends[0], &byte, 1), EINTR);
    ualarm(20000, 0);
    struct pollfd polled = {ends[0], POLLIN, 0};
    FAILS(poll(&polled, 1, -1), EINTR);
    ualarm(20000, 0);
    struct epoll_event event = {EPOLLIN, {.u64 = 1}};
    int epoll = epoll_create1(0);
    MUST(epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event) == 0);
    FAILS(epoll_wait(epoll, &event, 1, 5000), EINTR);
    return 0;
}

/* Copies inside the kernel: from a file to a pipe and to a file, and what is refused. */
static int copies(void)
{
    static char text[300000], back[sizeof text];
    int ends[2], from = open("copy.from", O_RDWR | O_CREAT | O_TRUNC, 0644);
    int to = open("copy.to", O_RDWR | O_CREAT | O_TRUNC, 0644);
    int appends = open("copy.to", O_WRONLY | O_APPEND), folder = open(".", O_RDONLY);
    off_t at = 100;
    loff_t in = 7, out = 250000;
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = i % 251;
    MUST(from >= 0 && to >= 0 && appends >= 0 && folder >= 0 && pipe(ends) == 0);
    MUST(write(from, text, sizeof text) == sizeof text);
    MUST(sendfile(ends[1], from, NULL, 10) == 0);
    MUST(sendfile(ends[1], from, &at, 1000) == 1000 && at == 1100);
    MUST(read(ends[0], back, 5000) == 1000 && memcmp(back, text + 100, 1000) == 0);
    MUST(lseek(from, 0, SEEK_SET) == 0 && sendfile(to, from, NULL, 1 << 20) == sizeof text);
    MUST(lseek(from, 0, SEEK_CUR) == sizeof text && lseek(to, 0, SEEK_CUR) == sizeof text);
    MUST(pread(to, back, sizeof back, 0) == sizeof text && memcmp(back, text, sizeof text) == 0);
    MUST(copy_file_range(from, &in, to, &out, 100000, 0) == 100000);
    MUST(in == 100007 && out == 350000 && lseek(to, 0, SEEK_END) == 350000);
    MUST(pread(to, back, 100000, 250000) == 100000 && memcmp(back, text + 7, 100000) == 0);
    in = sizeof text - 5;
    MUST(copy_file_range(from, &in, to, NULL, 100, 0) == 5 && in == sizeof text);
    MUST(copy_file_range(from, &in, to, NULL, 100, 0) == 0);
    in = 0, out = 299000; /* Within one file: no more than is there, and no overlap. */
    MUST(copy_file_range(from, &in, from, &out, 2000, 0) == 2000 && out == 301000);
    out = 1000;
    in = 0;
    FAILS(copy_file_range(from, &in, from, &out, 2000, 0), EINVAL);
    FAILS(copy_file_range(from, NULL, to, NULL, 1, 1), EINVAL);
    FAILS(copy_file_range(from, NULL, folder, NULL, 1, 0), EISDIR);
    FAILS(copy_file_range(from, NULL, appends, NULL, 1, 0), EBADF);
    FAILS(copy_file_range(appends, NULL, to, NULL, 1, 0), EBADF);
    FAILS(copy_file_range(ends[0], NULL, to, NULL, 1, 0), EINVAL);
    FAILS(copy_file_range(from, NULL, 1000, NULL, 1, 0), EBADF);
    FAILS(sendfile(appends, from, NULL, 1), EINVAL);
    FAILS(sendfile(to, appends, NULL, 1), EBADF);
    FAILS(sendfile(to, ends[0], NULL, 1), EINVAL);
    at = -1;
    FAILS(sendfile(to, from, &at, 1), EINVAL);
    FAILS(sendfile(to, from, (off_t *)8, 1), EFAULT);
    MUST(fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0 && lseek(from, 0, SEEK_SET) == 0);
    MUST(sendfile(ends[1], from, NULL, sizeof text) == 65536);
    MUST(lseek(from, 0, SEEK_CUR) == 65536);
    FAILS(sendfile(ends[1], from, NULL, 1), EAGAIN);
    MUST(close(ends[0]) == 0 && signal(SIGPIPE, SIG_IGN) != SIG_ERR);
    FAILS(sendfile(ends[1], from, NULL, 1), EPIPE);
    MUST(signal(SIGPIPE, SIG_DFL) == SIG_IGN && close(ends[1]) == 0);
    MUST(close(from) == 0 && close(to) == 0 && close(appends) == 0 && close(folder) == 0);
    return unlink("copy.from") || unlink("copy.to");
}

int main(void)
{
    int failed = pipes() || copies() || sockets() || counters() || timers() || waiting() || threads() ||
                 robust_mutexes() || interrupted() || whole_writes();
    puts(failed ? "streams: failed" : "streams: done");
    return failed;
}
