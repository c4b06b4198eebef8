/* Streams, what waits for them, and locks: until the kernel refuses more, and with extreme
 * values. */
#include "attack.h"
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>

static char bytes[1 << 16];

/* Writes until nothing more fits. Returns how much did. */
static long fill(int fd)
{
    long written, all = 0;
    while ((written = write(fd, bytes, sizeof bytes)) > 0)
        all += written;
    MUST(errno == EAGAIN || errno == ENOMEM);
    return all;
}

static void fill_pipes_until_refused(void)
{
    int ends[2], pipes = 0;
    long all = 0;
    for (; pipe2(ends, O_NONBLOCK) == 0; pipes++)
        all += fill(ends[1]);
    MUST(errno == EMFILE && pipes > 400 && pipes < 600 && all >= 65536);
    /* The last pipe still works. */
    long there = 0, count;
    while ((count = read(ends[0], bytes, sizeof bytes)) > 0)
        there += count;
    MUST(errno == EAGAIN && fill(ends[1]) >= there);
}

static void fill_sockets_until_refused(void)
{
    int ends[2], pairs = 0;
    for (; socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0; pairs++)
        for (int i = 0; i < 2; i++)
            fill(ends[i]);
    MUST(errno == EMFILE && pairs > 400);
}

static void write_to_closed_pipe(void)
{
    int ends[2];
    MUST(pipe(ends) == 0 && close(ends[0]) == 0);
    MUST(write(ends[1], bytes, 1) < 0);
}

static void pipe_with_itself(void)
{
    int ends[2];
    MUST(pipe(ends) == 0);
    MUST(write(ends[1], bytes, sizeof bytes) == sizeof bytes);
    /* Nothing will read it. */
    write(ends[1], bytes, sizeof bytes);
}

static void transfers_at_kernel_addresses(void)
{
    int ends[2], counter = eventfd(1, EFD_NONBLOCK);
    MUST(pipe2(ends, O_NONBLOCK) == 0);
    for (int i = 0; i < 2; i++) {
        void *wild = i == 0 ? (void *)KERNEL : UNMAPPED;
        MUST(write(ends[1], wild, 100000) < 0 && errno == EFAULT);
        MUST(write(counter, wild, 8) < 0 && errno == EFAULT);
        MUST(write(ends[1], bytes, 10) == 10);
        MUST(read(ends[0], wild, 10) < 0 && errno == EFAULT);
        MUST(syscall(SYS_poll, wild, 3, 0) < 0 && errno == EFAULT);
        MUST(syscall(SYS_pipe, wild) < 0 && errno == EFAULT);
        MUST(syscall(SYS_epoll_wait, epoll_create1(0), wild, 1 << 20, 0) <= 0);
    }
    /* A part in the program's memory, the rest behind its end. */
    char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(page != MAP_FAILED && munmap(page + 4096, 4096) == 0);
    MUST(write(ends[1], page + 4000, 8000) <= 96);
}

static void timers_of_a_nanosecond(void)
{
    static const long clocks[] = {CLOCK_REALTIME, CLOCK_MONOTONIC};
    const struct itimerspec often = {{0, 1}, {0, 1}}, late = {{INT64_MAX, 0}, {INT64_MAX, 0}},
                            bad = {{0, 1000000000}, {0, 1}}, negative = {{-1, 0}, {0, 1}};
    for (int i = 0; i < 100; i++) {
        int fd = timerfd_create(clocks[i % 2], TFD_NONBLOCK);
        struct pollfd polled = {fd, POLLIN, 0};
        struct itimerspec rest;
        uint64_t count = 0;
        MUST(fd >= 0 && timerfd_settime(fd, 0, &bad, NULL) < 0 && errno == EINVAL);
        MUST(timerfd_settime(fd, 0, &negative, NULL) < 0 && errno == EINVAL);
        MUST(timerfd_settime(fd, 0, &late, NULL) == 0 && poll(&polled, 1, 0) == 0);
        for (int flags = 0; flags < 40; flags++) {
            MUST(timerfd_settime(fd, flags % 2, &often, NULL) == 0);
            MUST(poll(&polled, 1, 1000) == 1 && read(fd, &count, sizeof count) == 8 && count > 0);
            MUST(timerfd_gettime(fd, &rest) == 0);
        }
        close(fd);
    }
}

static void counters_at_their_limit(void)
{
    int fd = eventfd(0, EFD_NONBLOCK);
    uint64_t most = UINT64_MAX - 1, one = 1, all = UINT64_MAX, value;
    MUST(write(fd, &most, 8) == 8 && write(fd, &one, 8) < 0 && errno == EAGAIN);
    MUST(write(fd, &all, 8) < 0 && errno == EINVAL);
    MUST(read(fd, &value, 8) == 8 && value == most && read(fd, &value, 8) < 0);
}

static void epoll_until_refused(void)
{
    struct epoll_event event = {EPOLLIN | EPOLLOUT | EPOLLET, {0}}, events[2000];
    int epoll = epoll_create1(0), fd, count = 0;
    MUST(epoll >= 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, epoll, &event) < 0 && errno == EINVAL);
    for (; (fd = eventfd(0, EFD_NONBLOCK)) >= 0; count++) {
        MUST(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0);
        MUST(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) < 0 && errno == EEXIST);
    }
    MUST(errno == EMFILE && count > 900);
    MUST(epoll_wait(epoll, events, 2000, 0) == count && epoll_wait(epoll, events, 2000, 0) == 0);
    MUST(epoll_wait(epoll, events, 0, 0) < 0 && errno == EINVAL);
    MUST(syscall(SYS_epoll_wait, epoll, events, INT32_MAX, 0) < 0 && errno == EINVAL);
}

/* Locks of every second byte, which do not join. */
static void locks_until_refused(void)
{
    int fd = open("attack.locks", O_RDWR | O_CREAT, 0600), count = 0;
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
    for (; fcntl(fd, F_SETLK, &lock) == 0 && count < 100000; count++)
        lock.l_start += 2;
    MUST(errno == ENOLCK && count > 100);
    lock.l_start = 0, lock.l_len = INT64_MAX, lock.l_type = F_UNLCK;
    MUST(fcntl(fd, F_SETLK, &lock) == 0);
    lock.l_start = INT64_MAX, lock.l_len = INT64_MAX, lock.l_type = F_RDLCK;
    MUST(fcntl(fd, F_SETLK, &lock) < 0 && errno == EOVERFLOW);
    lock.l_len = 1;
    MUST(fcntl(fd, F_SETLK, &lock) == 0);
    lock.l_start = 1, lock.l_len = -5;
    MUST(fcntl(fd, F_SETLK, &lock) < 0 && errno == EINVAL);
    for (int i = 0; i < 2000; i++)
        MUST(flock(fd, i % 3 == 0 ? LOCK_EX : i % 3 == 1 ? LOCK_SH : LOCK_UN) == 0);
    MUST(unlink("attack.locks") == 0);
}

const struct attack stream_attacks[] = {
    ATTACK(fill_pipes_until_refused),
    ATTACK(fill_sockets_until_refused),
    ATTACK(write_to_closed_pipe),
    ATTACK(pipe_with_itself),
    ATTACK(transfers_at_kernel_addresses),
    ATTACK(timers_of_a_nanosecond),
    ATTACK(counters_at_their_limit),
    ATTACK(epoll_until_refused),
    ATTACK(locks_until_refused),
    {0},
};
