/* Memory of every kind: prints the same here as under Linux, or names the line of the first check
 * that fails. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "must.h"

enum { PAGE = 4096, RW = PROT_READ | PROT_WRITE, PRIVATE = MAP_PRIVATE | MAP_ANONYMOUS };

static sigjmp_buf after_fault;
static volatile sig_atomic_t last_signal;

static void on_fault(int number)
{
    last_signal = number;
    siglongjmp(after_fault, 1);
}

/* The signal that a write raises, or 0. */
static int signal_of_write(volatile char *to)
{
    last_signal = 0;
    if (sigsetjmp(after_fault, 1) == 0)
        *to = 1;
    return last_signal;
}

static char *map(void *at, size_t bytes, int access, int flags)
{
    return mmap(at, bytes, access, PRIVATE | flags, -1, 0);
}

/* As Go's runtime does: reserves, then maps parts of the reservation. */
static int reservations(void)
{
    char *hint = (char *)0xc000000000ul;
    MUST(map(hint, 64 << 20, PROT_NONE, MAP_NORESERVE) == hint);
    MUST(map(hint, 4 << 20, RW, MAP_FIXED) == hint && signal_of_write(hint + 5000) == 0);
    MUST(signal_of_write(hint + (4 << 20)) == SIGSEGV && hint[5000] == 1);
    MUST(map(hint, PAGE, RW, MAP_FIXED) == hint && hint[0] == 0 && hint[5000] == 1);
    MUST(map(hint + PAGE, PAGE, RW, MAP_FIXED) != MAP_FAILED && hint[5000] == 0);
    MUST(map(hint, PAGE, RW, MAP_FIXED_NOREPLACE) == MAP_FAILED && errno == EEXIST);
    MUST(map(hint, PAGE, RW, 0) != hint);
    MUST(map((char *)1, PAGE, RW, MAP_FIXED) == MAP_FAILED && errno == EINVAL);
    MUST((uintptr_t)map(NULL, PAGE, RW, MAP_32BIT) < 1ul << 31);
    MUST(munmap(hint, 64 << 20) == 0 && signal_of_write(hint) == SIGSEGV);
    /* Far more than the machine's memory, of which little is touched. */
    char *large = map(NULL, 1ul << 40, RW, MAP_NORESERVE);
    MUST(large != MAP_FAILED);
    for (size_t at = 0; at < 1ul << 40; at += 1ul << 34)
        large[at] = 1;
    MUST(munmap(large, 1ul << 40) == 0);
    return 0;
}

static int code(void)
{
    static const unsigned char returns_42[] = {0xb8, 42, 0, 0, 0, 0xc3};
    char *page = map(NULL, PAGE, RW, 0);
    MUST(page != MAP_FAILED);
    memcpy(page, returns_42, sizeof returns_42);
    MUST(mprotect(page, PAGE, PROT_READ | PROT_EXEC) == 0);
    MUST(((int (*)(void))(uintptr_t)page)() == 42 && signal_of_write(page) == SIGSEGV);
    MUST(mprotect(page, PAGE, RW) == 0);
    page[1] = 43;
    MUST(mprotect(page, PAGE, PROT_READ | PROT_EXEC) == 0);
    MUST(((int (*)(void))(uintptr_t)page)() == 43 && munmap(page, PAGE) == 0);
    return 0;
}

static int remapping(void)
{
    char *pages = map(NULL, 600 * PAGE, RW, 0), *wall;
    MUST(pages != MAP_FAILED);
    for (int i = 0; i < 600; i++)
        pages[i * PAGE] = (char)i;
    wall = map(pages + 600 * PAGE, PAGE, PROT_NONE, 0);
    MUST(wall != MAP_FAILED);
    if (wall != pages + 600 * PAGE)
        MUST(map(pages + 600 * PAGE, PAGE, PROT_NONE, MAP_FIXED) != MAP_FAILED);
    MUST(mremap(pages, 600 * PAGE, 700 * PAGE, 0) == MAP_FAILED && errno == ENOMEM);
    char *moved = mremap(pages, 600 * PAGE, 700 * PAGE, MREMAP_MAYMOVE);
    MUST(moved != MAP_FAILED && moved != pages && moved[699 * PAGE] == 0);
    for (int i = 0; i < 600; i++)
        MUST(moved[i * PAGE] == (char)i);
    MUST(signal_of_write(pages) == SIGSEGV);
    MUST(mremap(moved, 700 * PAGE, 3 * PAGE, 0) == moved && moved[2 * PAGE] == 2);
    MUST(signal_of_write(moved + 3 * PAGE) == SIGSEGV);
    MUST(mremap(moved, 3 * PAGE, 5 * PAGE, 0) == moved && signal_of_write(moved + 4 * PAGE) == 0);
    MUST(mremap(moved, 0, PAGE, MREMAP_MAYMOVE) == MAP_FAILED && errno == EINVAL);
    return 0;
}

/* To a fixed address, over what is there: larger, then smaller. */
static int remapping_to_a_place(void)
{
    const int fixed = MREMAP_MAYMOVE | MREMAP_FIXED;
    char *pages = map(NULL, 600 * PAGE, RW, 0), *place = map(NULL, 800 * PAGE, RW, 0);
    MUST(pages != MAP_FAILED && place != MAP_FAILED);
    for (int i = 0; i < 600; i++)
        pages[i * PAGE] = (char)i, place[i * PAGE] = 'p';
    place[750 * PAGE] = 'p';
    MUST(mremap(pages, 600 * PAGE, 700 * PAGE, fixed, place) == place);
    for (int i = 0; i < 600; i++)
        MUST(place[i * PAGE] == (char)i);
    MUST(place[699 * PAGE] == 0 && place[750 * PAGE] == 'p');
    MUST(signal_of_write(pages) == SIGSEGV && signal_of_write(pages + 599 * PAGE) == SIGSEGV);

    MUST(mremap(place, 700 * PAGE, 3 * PAGE, fixed, pages) == pages);
    MUST(pages[2 * PAGE] == 2 && signal_of_write(pages + 3 * PAGE) == SIGSEGV);
    MUST(signal_of_write(place) == SIGSEGV && signal_of_write(place + 699 * PAGE) == SIGSEGV);
    MUST(place[750 * PAGE] == 'p');
    MUST(mremap(pages, 3 * PAGE, PAGE, fixed, pages + PAGE) == MAP_FAILED && errno == EINVAL);
    MUST(mremap(pages, PAGE, PAGE, fixed, place + 1) == MAP_FAILED && errno == EINVAL);
    MUST(mremap(pages, PAGE, PAGE, MREMAP_FIXED, place) == MAP_FAILED && errno == EINVAL);
    MUST(mremap(place, PAGE, PAGE, fixed, pages) == MAP_FAILED && errno == EFAULT);
    return 0;
}

static int advice(void)
{
    unsigned char there[4];
    char *pages = map(NULL, 4 * PAGE, RW, 0);
    MUST(pages != MAP_FAILED);
    pages[PAGE] = 1;
    MUST(mincore(pages, 2 * PAGE + 1, there) == 0 && !there[0] && there[1] && !there[2]);
    MUST(mincore(pages + 1, PAGE, there) < 0 && errno == EINVAL);
    memset(pages, 7, 4 * PAGE);
    MUST(madvise(pages + PAGE, PAGE, MADV_DONTNEED) == 0 && pages[PAGE] == 0 && pages[0] == 7);
    MUST(madvise(pages, 4 * PAGE, MADV_WILLNEED) == 0 && madvise(pages, PAGE, 4711) < 0);
    MUST(mlock(pages, PAGE) == 0 && munlock(pages, PAGE) == 0 && msync(pages, PAGE, MS_SYNC) == 0);
    MUST(munmap(pages + 2 * PAGE, PAGE) == 0);
    MUST(msync(pages, 4 * PAGE, MS_SYNC) < 0 && errno == ENOMEM);
    MUST(mincore(pages, 4 * PAGE, there) < 0 && errno == ENOMEM);
    MUST(mprotect(pages, 4 * PAGE, PROT_READ) < 0 && errno == ENOMEM);
    return 0;
}

static int of_files(void)
{
    char text[3 * PAGE];
    int fd = open("mapped", O_RDWR | O_CREAT | O_TRUNC, 0600), reader;
    memset(text, 'x', sizeof text);
    MUST(fd >= 0 && write(fd, text, 10000) == 10000);
    char *own = mmap(NULL, 10000, RW, MAP_PRIVATE, fd, 0);
    char *shared = mmap(NULL, 3 * PAGE, RW, MAP_SHARED, fd, 0);
    char *last = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 2 * PAGE);
    MUST(own != MAP_FAILED && shared != MAP_FAILED && last != MAP_FAILED);
    own[0] = 'o';
    shared[1] = 's';
    shared[9999] = 'e';
    MUST(pread(fd, text, 3, 0) == 3 && memcmp(text, "xsx", 3) == 0 && last[9999 - 2 * PAGE] == 'e');
    MUST(own[5000] == 'x' && own[10000] == 0 && pwrite(fd, "w", 1, 4) == 1 && shared[4] == 'w');
    MUST(ftruncate(fd, 5000) == 0 && shared[4] == 'w');
    /* Pages behind the end are gone, though they were touched; the private ones too. */
    MUST(signal_of_write(shared + 2 * PAGE) == SIGBUS);
    MUST(signal_of_write(own + 10000) == SIGBUS && own[4999] == 'x' && shared[5000] == 0);
    MUST(munmap(shared, 3 * PAGE) == 0 && munmap(last, PAGE) == 0 && own[0] == 'o');
    shared = mmap(NULL, 2 * PAGE, RW, MAP_SHARED, fd, PAGE);
    MUST(shared != MAP_FAILED && signal_of_write(shared + PAGE) == SIGBUS);
    MUST((reader = open("mapped", O_RDONLY)) >= 0);
    MUST(mmap(NULL, PAGE, RW, MAP_SHARED, reader, 0) == MAP_FAILED && errno == EACCES);
    char *readable = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, reader, 0);
    MUST(mprotect(readable, PAGE, RW) < 0 && errno == EACCES && readable[1] == 's');
    MUST(close(fd) == 0 && close(reader) == 0 && unlink("mapped") == 0 && readable[4] == 'w');
    MUST(mmap(NULL, PAGE, RW, MAP_PRIVATE, 99, 0) == MAP_FAILED && errno == EBADF);
    return 0;
}

/* Uses a frame of 16 KiB in each call. */
static int deep(int calls)
{
    volatile char frame[16384];
    frame[0] = frame[16383] = (char)calls;
    return calls == 0 ? 0 : deep(calls - 1) + (frame[16383] == (char)calls);
}

static int stack(void)
{
    struct rlimit limit;
    MUST(getrlimit(RLIMIT_STACK, &limit) == 0);
    printf("stack of %lu KiB, used for %d frames\n", (unsigned long)limit.rlim_cur >> 10,
            deep(400));
    return 0;
}

static int heap(void)
{
    /* The calls themselves: musl's functions refuse. */
    char *end = (char *)syscall(SYS_brk, 0), *more = end + (1 << 20);
    MUST((char *)syscall(SYS_brk, more) == more && more[-1] == 0);
    more[-1] = end[5000] = 1;
    MUST((char *)syscall(SYS_brk, end) == end && (char *)syscall(SYS_brk, more) == more);
    char *page = (char *)(((uintptr_t)end + 4095) & ~4095ul);
    MUST(page[4096] == 0 && more[-1] == 0);
    return 0;
}

/* Touches each page of as many MiB, which a machine may lack. */
static int touch(size_t mib)
{
    volatile char *all = map(NULL, mib << 20, RW, MAP_NORESERVE);
    MUST(all != MAP_FAILED);
    for (size_t at = 0; at < mib << 20; at += PAGE)
        all[at] = 1;
    printf("mappings: touched %zu MiB\n", mib);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return touch(atoi(argv[1]));
    struct sigaction action = {.sa_handler = on_fault};
    setvbuf(stdout, NULL, _IOLBF, 0);
    MUST(sigaction(SIGSEGV, &action, NULL) == 0 && sigaction(SIGBUS, &action, NULL) == 0);
    int failed = reservations() || code() || remapping() || remapping_to_a_place() || advice() ||
                 of_files() || stack() || heap();
    puts(failed ? "mappings: failed" : "mappings: done");
    return failed;
}
