/* Calls on files: prints the same here as under Linux, or names the line of the first check that
 * fails. `files NAME` changes an existing file instead. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "files: line %d: %s (%s)\n", __LINE__, #condition, strerror(errno));   \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

static char large[100000], back[100001];

/* Returns whether a file has these bytes and no others. */
static int holds(int fd, const char *bytes, size_t count)
{
    char *all = malloc(count + 1);
    int same = all && pread(fd, all, count + 1, 0) == (ssize_t)count &&
               memcmp(all, bytes, count) == 0;
    free(all);
    return same;
}

/* A file that was there before: writes to pages of it change no others. */
static int change_text(const char *name)
{
    struct stat stat_of;
    int fd = open(name, O_RDWR);
    MUST(fd >= 0 && fstat(fd, &stat_of) == 0 && stat_of.st_size % 4096 != 0);
    size_t size = stat_of.st_size;
    char *text = calloc(size + 20000, 1);
    MUST(text && pread(fd, text, size, 0) == (ssize_t)size);

    memcpy(text + 4090, "two pages", 9);
    MUST(pwrite(fd, "two pages", 9, 4090) == 9 && holds(fd, text, size));
    /* Behind the end, within its page and beyond. */
    text[size + 1] = 'x';
    MUST(pwrite(fd, "x", 1, size + 1) == 1 && holds(fd, text, size + 2));
    text[size + 10000] = 'y';
    MUST(pwrite(fd, "y", 1, size + 10000) == 1 && holds(fd, text, size + 10001));
    /* What was cut off is zeros when the file grows again. */
    MUST(ftruncate(fd, 50001) == 0 && holds(fd, text, 50001));
    memset(text + 50001, 0, 20000);
    MUST(ftruncate(fd, 60000) == 0 && holds(fd, text, 60000));
    MUST(ftruncate(fd, 8192) == 0 && ftruncate(fd, 8193) == 0);
    text[8192] = 0;
    MUST(holds(fd, text, 8193) && close(fd) == 0);
    free(text);
    return 0;
}

int main(int argc, char **argv)
{
    struct stat stat_of;
    if (argc > 1) {
        MUST(change_text(argv[1]) == 0);
        printf("files: changed %s\n", argv[1]);
        return 0;
    }
    unlink("files.tmp");
    unlink("files.new");

    int fd = open("files.tmp", O_RDWR | O_CREAT | O_EXCL, 0644);
    MUST(fd >= 0);
    MUST(open("files.tmp", O_WRONLY | O_CREAT | O_EXCL, 0644) < 0 && errno == EEXIST);
    for (size_t i = 0; i < sizeof large; i++)
        large[i] = (char)(i * 31 + i / 256);
    MUST(write(fd, large, sizeof large) == sizeof large);
    MUST(fstat(fd, &stat_of) == 0 && stat_of.st_size == sizeof large && S_ISREG(stat_of.st_mode));
    MUST(read(fd, back, 1) == 0);
    MUST(lseek(fd, 4095, SEEK_SET) == 4095 && read(fd, back, sizeof back) == sizeof large - 4095);
    MUST(memcmp(back, large + 4095, sizeof large - 4095) == 0);

    /* A hole reads as zeros, and so does what a truncation cut off when the file grows again. */
    MUST(pwrite(fd, "end", 3, 200000) == 3 && lseek(fd, 0, SEEK_CUR) == sizeof large);
    MUST(pread(fd, back, 10, 150000) == 10 && memcmp(back, (char[10]){0}, 10) == 0);
    MUST(ftruncate(fd, 5000) == 0 && ftruncate(fd, 6000) == 0);
    MUST(pread(fd, back, 2000, 4999) == 1001 && back[0] == large[4999]);
    MUST(memcmp(back + 1, (char[1000]){0}, 1000) == 0);

    /* Duplicates share a position; another open has its own. */
    int copy = dup(fd), other = open("./files.tmp", O_WRONLY | O_APPEND);
    MUST(copy > fd && other > copy && lseek(copy, 77, SEEK_SET) == 77);
    MUST(lseek(fd, 0, SEEK_CUR) == 77 && lseek(other, 0, SEEK_CUR) == 0);
    struct iovec parts[2] = {{"ab", 2}, {"cde", 3}};
    MUST(writev(other, parts, 2) == 5 && lseek(other, 0, SEEK_CUR) == 6005);
    MUST(read(other, back, 1) < 0 && errno == EBADF);
    MUST(fcntl(other, F_GETFL) >= 0 && (fcntl(other, F_GETFL) & O_ACCMODE) == O_WRONLY);
    MUST(dup2(other, 20) == 20 && close(other) == 0 && write(20, "f", 1) == 1 && close(20) == 0);
    MUST(pread(fd, back, 100, 6000) == 6 && memcmp(back, "abcdef", 6) == 0);

    /* A file has one inode number by every path. */
    struct stat again;
    MUST(stat(".///./files.tmp", &again) == 0 && fstat(fd, &stat_of) == 0);
    MUST(again.st_ino == stat_of.st_ino && again.st_dev == stat_of.st_dev);
    int second = open("files.new", O_RDWR | O_CREAT, 0644);
    MUST(fstat(second, &again) == 0 && again.st_ino != stat_of.st_ino);
    MUST(pread(fd, back, 1, -1) < 0 && errno == EINVAL && pwrite(fd, back, 1, -1) < 0 &&
         errno == EINVAL);
    MUST(dup3(second, second, 0) < 0 && errno == EINVAL);
    MUST(fcntl(second, F_SETFL, O_APPEND) == 0 && (fcntl(second, F_GETFL) & O_APPEND));
    struct iovec short_of[2] = {{"ab", 2}, {(void *)16, 3}};
    MUST(write(second, "xyz", 3) == 3 && lseek(second, 0, SEEK_SET) == 0);
    MUST(writev(second, short_of, 2) == 2 && lseek(second, 0, SEEK_CUR) == 5);
    MUST(writev(second, short_of + 1, 1) < 0 && errno == EFAULT);
    MUST(pread(second, back, 9, 0) == 5 && memcmp(back, "xyzab", 5) == 0);
    int null = open("/dev/null", O_RDWR);
    MUST(lseek(null, 7, SEEK_SET) == 0 && close(null) == 0 && close(second) == 0);

    /* poll: files are always ready; with none to wait for, the timeout passes. */
    struct pollfd polled[4] = {
        {fd, POLLIN | POLLOUT, 0}, {60, POLLIN, 0}, {-3, POLLIN, 7}, {fd, POLLPRI, 7},
    };
    MUST(poll(polled, 4, 5000) == 2 && polled[0].revents == (POLLIN | POLLOUT));
    MUST(polled[1].revents == POLLNVAL && polled[2].revents == 0 && polled[3].revents == 0);
    MUST(poll(polled + 2, 2, 0) == 0 && poll(polled + 2, 2, 30) == 0 && poll(NULL, 0, 1) == 0);
    struct pollfd *volatile nowhere = (void *)16;
    volatile nfds_t many = -1;
    MUST(poll(nowhere, 1, 0) < 0 && errno == EFAULT && poll(polled, many, 0) < 0 &&
         errno == EINVAL);
    MUST(fsync(fd) == 0 && fdatasync(fd) == 0 && fsync(60) < 0 && errno == EBADF);

    /* Errors of invalid calls. */
    struct rlimit most;
    MUST(ftruncate(60, 0) < 0 && errno == EBADF && ftruncate(fd, -1) < 0 && errno == EINVAL);
    MUST(stat("", &again) < 0 && errno == ENOENT && fstatat(fd, "", &again, 0) < 0 &&
         errno == ENOENT);
    MUST(fstatat(fd, "", &again, AT_EMPTY_PATH) == 0 && again.st_ino == stat_of.st_ino);
    MUST(getrlimit(RLIMIT_NOFILE, &most) == 0 && most.rlim_cur < 1 << 30);
    MUST(fcntl(fd, F_DUPFD, (int)most.rlim_cur) < 0 && errno == EINVAL);
    MUST(dup2(fd, (int)most.rlim_cur) < 0 && errno == EBADF);
    int last = fcntl(fd, F_DUPFD, (int)most.rlim_cur - 1);
    MUST(last == (int)most.rlim_cur - 1 && close(last) == 0);

    /* A buffer that reaches into unmapped memory is used up to there. */
    char *edge = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(edge != MAP_FAILED && munmap(edge + 4096, 4096) == 0);
    MUST(pread(fd, edge + 4086, 100, 7) == 10 && memcmp(edge + 4086, large + 7, 10) == 0);
    MUST(pread(fd, edge + 4096, 1, 7) < 0 && errno == EFAULT);
    MUST(pwrite(fd, edge + 4086, 100, 1000) == 10 && pwrite(fd, edge + 4096, 1, 0) < 0 &&
         errno == EFAULT);
    MUST(pread(fd, back, 20, 1000) == 20 && memcmp(back, large + 7, 10) == 0);
    MUST(memcmp(back + 10, large + 1010, 10) == 0);

    /* A file without a name stays while it is open. */
    MUST(rename("files.tmp", "files.new") == 0 && access("files.tmp", F_OK) < 0);
    MUST(stat("files.new", &stat_of) == 0 && stat_of.st_size == 6006);
    MUST(unlink("files.new") == 0 && stat("files.new", &stat_of) < 0 && errno == ENOENT);
    MUST(pread(fd, back, 3, 6000) == 3 && close(fd) == 0 && close(copy) == 0);
    MUST(close(fd) < 0 && errno == EBADF);

    /* Streams of the C library, and sleep. */
    FILE *file = fopen("files.tmp", "w+");
    MUST(file);
    for (int i = 0; i < 1000; i++)
        fprintf(file, "line %d\n", i);
    rewind(file);
    long sum = 0;
    for (int i; fscanf(file, "line %d\n", &i) == 1;)
        sum += i;
    fclose(file);
    MUST(truncate("files.tmp", 7) == 0 && stat("files.tmp", &stat_of) == 0 && stat_of.st_size == 7);
    MUST(remove("files.tmp") == 0);
    struct timespec before, after, pause = {0, 30000000};
    MUST(clock_gettime(CLOCK_MONOTONIC, &before) == 0 && nanosleep(&pause, NULL) == 0);
    MUST(clock_gettime(CLOCK_MONOTONIC, &after) == 0);
    long passed =
        (after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000;
    MUST(passed >= 29);
    char folder[100];
    MUST(getcwd(folder, sizeof folder) && folder[0] == '/');
    printf("files: %ld\n", sum);
    return 0;
}
