/* How long a program waits for its turn while another makes long system calls on the same CPU.
 *
 * `turns call NAME…` makes the calls, one phase for each. `turns watch PHASES` reads the clock all
 * the time and prints, for each phase, the longest time between two readings. The number of the
 * phase is in a file. `turns end PHASE exit|signal` opens sessions, enters the phase and ends. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "tally.h"

static int phase_file;

#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("turns: line %d: %s (%s)\n", __LINE__, #condition, strerror(errno));            \
            pwrite(phase_file, &(unsigned char){UCHAR_MAX}, 1, 0); /* ends the other program */    \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* Tally's calls, as in kernel/abi. */
enum { SESSION_OPEN = 0x7a110000, SESSION_START, SESSION_READ = 0x7a110003 };
enum { SESSION_CLOSE = 0x7a110005 };
enum { PROGRAM_LOAD = 0x7a110020, PROGRAM_RUN, PROGRAM_WAIT };
/* Their report takes several turns. */
enum { SESSIONS_AT_END = 3 };
enum { EVENTS = 1024, WORDS_OF_A_READING = 8, ESTIMATED = 2, MAX_PHASES = 24 };
/* Most of a turn of the scheduler, in nanoseconds: the call begins at its end. */
#define MOST_OF_A_TURN 9000000l
/* In which most of a session's 256 groups get as many slices as an estimate needs. */
#define MANY_ROUNDS 200000000l
/* Three of these fit into the memory of a test machine. */
#define LARGE (48ul << 20)

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000l + time.tv_nsec;
}

static unsigned char phase(void)
{
    unsigned char phase = 0;
    pread(phase_file, &phase, 1, 0);
    return phase;
}

static void watch(int phases)
{
    int64_t longest[MAX_PHASES] = {0}, last = now();
    for (unsigned char current = phase(); current <= phases; current = phase()) {
        int64_t time = now();
        if (time - last > longest[current])
            longest[current] = time - last;
        last = time;
    }
    for (int i = 1; i <= phases; i++)
        printf("turns: phase %d %ld us\n", i, (long)(longest[i] / 1000));
}

static char *map(size_t bytes)
{
    char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(at != MAP_FAILED);
    return at;
}

static int file;
static char *large;
static long session;

static void do_write(void) { MUST(pwrite(file, large, LARGE, 0) == (ssize_t)LARGE); }
static void do_read(void) { MUST(pread(file, large, LARGE, 0) == (ssize_t)LARGE); }

static void do_writev(void)
{
    struct iovec parts[4];
    for (int i = 0; i < 4; i++)
        parts[i] = (struct iovec){large + i * (LARGE / 4), LARGE / 4};
    MUST(lseek(file, 0, SEEK_SET) == 0 && writev(file, parts, 4) == (ssize_t)LARGE);
}

static void do_truncate(void) { MUST(ftruncate(file, 0) == 0); }
static void do_extend(void) { MUST(ftruncate(file, LARGE) == 0); }
static void do_mmap(void) { large = map(LARGE); }
static void do_munmap(void) { MUST(munmap(large, LARGE) == 0); }

static void do_madvise(void) { MUST(madvise(large, LARGE, MADV_DONTNEED) == 0); }
static void do_mprotect(void) { MUST(mprotect(large, LARGE, PROT_READ | PROT_WRITE) == 0); }

static void do_brk(void) { MUST(sbrk(LARGE) != (void *)-1); }

/* The error names the nearest of the catalogue's events. */
static void do_unknown_event(void)
{
    char list[255]; /* the longest spelling */
    uint64_t config[6] = {0, 0, 5000, 1000000, 0, 0};
    memset(list, 'x', sizeof list);
    MUST(syscall(SESSION_OPEN, list, sizeof list, config, NULL, 0, 0) < 0);
}

static void open_session(void)
{
    static char list[16 * EVENTS];
    uint64_t config[6] = {0, 0, 5000, 1000000, 0, 0};
    char *end = list;
    for (unsigned i = 0; i < EVENTS; i++)
        end += sprintf(end, "%sr%07x", i ? "," : "",
                       (1 + i % 200) << 24 | (1 + i / 200) << 8 | 0xc4);
    long opened = syscall(SESSION_OPEN, list, end - list, config, NULL, 0, 0);
    MUST(tally_opened_events(opened) == EVENTS);
    session = tally_opened_session(opened);
    MUST(syscall(SESSION_START, session) == 0);
}

static void do_session_open(void)
{
    open_session();
    /* Most of it in ring 3, where the session counts. */
    for (int64_t start = now(); now() - start < MANY_ROUNDS;)
        for (volatile int i = 0; i < 10000; i++)
            ;
}

static void do_session_read(void)
{
    static uint64_t readings[EVENTS][WORDS_OF_A_READING];
    MUST(syscall(SESSION_READ, session, readings, EVENTS) == EVENTS);
    int estimated = 0;
    for (int i = 0; i < EVENTS; i++)
        estimated += readings[i][0] == ESTIMATED;
    MUST(estimated > EVENTS / 2);
}

static void do_session_close(void) { MUST(syscall(SESSION_CLOSE, session) == 0); }

static void enter(unsigned char phase)
{
    MUST(pwrite(phase_file, &phase, 1, 0) == 1);
    sched_yield();
}

static unsigned char current_phase;

/* Only the end of the child is in the phase, not what it does before. */
static void run_child(const char *how)
{
    char words[64];
    int bytes = sprintf(words, "turns%cend%c%d%c%s%c", 0, 0, current_phase, 0, how, 0);
    enter(0);
    long child = syscall(PROGRAM_LOAD, words, bytes, NULL, 0);
    MUST(child > 0 && syscall(PROGRAM_RUN, child) == 0);
    MUST(syscall(PROGRAM_WAIT, child) == (*how == 's' ? 128 + SIGTERM : 0));
}

static void do_end_by_exit(void) { run_child("exit"); }
static void do_end_by_signal(void) { run_child("signal"); }

static void end(int phase, const char *how)
{
    for (int i = 0; i < SESSIONS_AT_END; i++)
        open_session();
    for (int64_t start = now(); now() - start < MOST_OF_A_TURN;)
        ;
    enter((unsigned char)phase);
    if (*how == 's')
        raise(SIGTERM);
    _exit(0);
}

static const struct {
    const char *name;
    void (*call)(void);
} calls[] = {
    {"write", do_write}, {"read", do_read}, {"writev", do_writev}, {"truncate", do_truncate},
    {"extend", do_extend}, {"mmap", do_mmap}, {"munmap", do_munmap}, {"madvise", do_madvise},
    {"mprotect", do_mprotect}, {"brk", do_brk}, {"unknown-event", do_unknown_event},
    {"session-open", do_session_open}, {"session-read", do_session_read},
    {"session-close", do_session_close}, {"end-by-exit", do_end_by_exit},
    {"end-by-signal", do_end_by_signal},
};

static void call(const char *name)
{
    for (unsigned i = 0; i < sizeof calls / sizeof *calls; i++)
        if (strcmp(name, calls[i].name) == 0) {
            int64_t start = now();
            while (now() - start < MOST_OF_A_TURN)
                ;
            start = now();
            calls[i].call();
            printf("turns: %s took %ld us\n", name, (long)((now() - start) / 1000));
            return;
        }
    exit(2);
}

int main(int argc, char **argv)
{
    MUST(argc > 2);
    phase_file = open("turns.phase", O_RDWR | O_CREAT, 0600);
    if (strcmp(argv[1], "watch") == 0) {
        watch(atoi(argv[2]));
        return 0;
    }
    if (strcmp(argv[1], "end") == 0)
        end(atoi(argv[2]), argv[3]);
    large = map(LARGE);
    file = open("turns.tmp", O_RDWR | O_CREAT, 0600);
    for (int i = 2; i < argc; i++) {
        current_phase = (unsigned char)(i - 1);
        enter(current_phase);
        call(argv[i]);
        sched_yield();
    }
    enter((unsigned char)(argc - 1));
    printf("turns: done\n");
    return 0;
}
