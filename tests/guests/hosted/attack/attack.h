/* Shared by the attacks: each is a function that its family's table names. */
#ifndef ATTACK_H
#define ATTACK_H

#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Ends the program with status 1 and names the line, unless `condition` holds. */
#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("attack: %s:%d: %s (%s)\n", __FILE__, __LINE__, #condition, strerror(errno));   \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* Tally's calls and errors, as in kernel/abi. */
enum {
    SESSION_OPEN = 0x7a110000,
    SESSION_START,
    SESSION_STOP,
    SESSION_READ,
    SESSION_STATS,
    SESSION_CLOSE,
    SESSION_MAP,
    SESSION_THRESHOLD,
    UPCALL_RETURN,
    SESSION_SAMPLE,
    SESSION_SAMPLES,
    SESSION_THREAD,
    PROGRAM_LOAD = 0x7a110020,
    PROGRAM_RUN,
    PROGRAM_WAIT,
};
enum {
    BAD_POINTER = 2008,
    NO_SESSION = 2009,
    WRONG_STATE = 2010,
    BUSY = 2011,
    NO_MEMORY = 2012,
    TOO_MANY_SESSIONS = 2017,
    TOO_MANY_PROGRAMS = 2018,
};

/* An address in the kernel's half, and one that is never mapped. */
#define KERNEL 0xffff800000000000ul
#define UNMAPPED ((void *)0x10)

/* Faults, by a write to UNMAPPED. */
void write_to_unmapped(void);

/* Opens a session on two events in `program`, 0 for this one. */
long open_session(const char *events, long program);

/* Waits on a futex that no other thread wakes. */
void futex_wait_forever(void);

/* Starts a thread on `stack` with the flags of clone(2) that threads have, and `flags`. It yields
 * for ever and uses no more of the stack than the address. */
long clone_thread(unsigned long flags, void *stack, void *tls);

/* Which of two instances of the program this is: the second argument. */
extern int instance;

struct attack {
    const char *name;
    void (*run)(void);
};
#define ATTACK(name) {#name, name}

/* The families' tables, each ended by a name of NULL. */
extern const struct attack signal_attacks[], thread_attacks[], memory_attacks[], file_attacks[],
    session_attacks[], stream_attacks[];

#endif
