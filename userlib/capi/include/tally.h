/* Logical performance counters for C programs that run under Tally.
 *
 * Link with libtally.a, which also holds the program's beginning (_start) and end:
 *   cc -static -nostdlib -ffreestanding program.c libtally.a
 *
 * A value is exact, estimated with its error, or not measured: never a bare number. Errors are
 * negative and listed below; tally_open writes a sentence for people as well.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef TALLY_H
#define TALLY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* At which privilege events are counted. */
enum tally_mode { TALLY_USER = 0, TALLY_KERNEL = 1, TALLY_FULL = 2 };

/* What a slice's length is counted in. */
enum tally_slice_unit { TALLY_CYCLES = 0, TALLY_INSTRUCTIONS = 1 };

struct tally_config {
    uint64_t mode;         /* enum tally_mode */
    uint64_t slice_unit;   /* enum tally_slice_unit */
    uint64_t slice_length; /* 5,000 to 2^30; 200,000 cycles is a good default */
    uint64_t budget_ppm;   /* the share of the program's time that the engine may take, in parts per
                            * million; 20,000 is a good default, 1,000,000 is no limit */
};

enum tally_kind { TALLY_EXACT = 1, TALLY_ESTIMATED = 2, TALLY_NOT_MEASURED = 3 };

/* A logical counter's value and what stands behind it. */
struct tally_reading {
    uint64_t kind;           /* enum tally_kind: tells which of the next fields hold */
    uint64_t count;          /* events: exact, or the estimate; not measured: a reason */
    double stderr_events;    /* estimated: standard error, in events */
    double half_width_95;    /* estimated: half the width of the 95 % interval, in events */
    uint64_t counted_cycles; /* cycles for which the event was counted */
    uint64_t total_cycles;   /* cycles for which the session ran */
    uint64_t slices;         /* slices in which the event was counted */
    uint64_t reserved;
};

/* What the engine tells of a session and of its own work for it, since the session opened. */
struct tally_stats {
    uint64_t groups;        /* groups of events that take turns */
    uint64_t slices;        /* slices begun and ended */
    uint64_t rounds;        /* rounds finished: every group had its turn */
    uint64_t pmis;          /* overflow interrupts that ended a slice */
    uint64_t spurious_pmis; /* overflow interrupts that ended nothing */
    uint64_t msr_accesses;  /* in the overflow path */
    uint64_t rdpmcs;        /* in the overflow path */
    uint64_t cycles;        /* counted, at the session's privilege */
    uint64_t instructions;  /* counted, at the session's privilege */
    uint64_t engine_ticks;  /* TSC ticks spent in the overflow path */
    uint64_t session_ticks; /* TSC ticks for which the session ran */
    uint64_t records;       /* trace records written */
    uint64_t lengthened;    /* slices that the budget made longer than asked for */
};

/* Errors, returned as negative numbers. */
enum tally_error {
    TALLY_UNKNOWN_EVENT = -2001,
    TALLY_TOO_MANY_EVENTS = -2002,
    TALLY_SLICE_OUT_OF_RANGE = -2003,
    TALLY_NO_PMU = -2004,
    TALLY_EVENT_NOT_SUPPORTED = -2005,
    TALLY_NO_EVENTS = -2006,
    TALLY_BAD_ARGUMENT = -2007,
    TALLY_BAD_POINTER = -2008,
    TALLY_NO_SESSION = -2009,
    TALLY_WRONG_STATE = -2010,
    TALLY_BUSY = -2011,
    TALLY_NO_MEMORY = -2012,
    TALLY_NO_PROGRAM = -2013,
    TALLY_NOT_A_PROGRAM = -2014
};

/* Opens a session on a list of event names, separated by commas or white space, and returns its
 * number, or an error. On error, up to detail_bytes bytes of text, ended by a zero byte, say what
 * went wrong; detail may be null if detail_bytes is 0. A program has one session at a time. */
int64_t tally_open(const char *events, const struct tally_config *config, char *detail,
                   size_t detail_bytes);
/* The same on a program that this one loaded: it counts while that one runs, can be read after its
 * end too, and cannot be mapped. */
int64_t tally_open_on(int64_t program, const char *events, const struct tally_config *config,
                      char *detail, size_t detail_bytes);
/* Begins to count, or goes on; returns 0 or an error. */
int64_t tally_start(int64_t session);
/* Pauses counting; returns 0 or an error. */
int64_t tally_stop(int64_t session);
/* Writes the first n readings, in the order of the list, and returns how many events there are, or
 * an error. May be called while counting. */
int64_t tally_read(int64_t session, struct tally_reading *readings, size_t n);
/* Writes the engine's own numbers; returns 0 or an error. */
int64_t tally_stats(int64_t session, struct tally_stats *stats);
/* Lets the program read its logical counters without system calls, before the session is started:
 * returns the address of its bank, which is there until the session closes, or an error. */
int64_t tally_map(int64_t session);
/* The value now of the logical counter of an event, by its index in the list: events so far, exact
 * or estimated, 0 while nothing is known, and never less than before. No system call. */
static inline uint64_t tally_counter(const uint64_t *bank, size_t event);
/* Half the width of its 95 % interval, in events: 0 if it is exact, NaN while it is not known. */
static inline double tally_counter_error(const uint64_t *bank, size_t event);
/* Loads a program of the ramdisk, which begins with tally_program_run, and returns its number, or an
 * error with its text: words are its name and arguments, each ended by a zero byte. */
int64_t tally_program_load(const char *words, size_t bytes, char *detail, size_t detail_bytes);
/* Lets it begin; returns 0 or an error. */
int64_t tally_program_run(int64_t program);
/* Waits for its end; returns its status, 0 to 255, or an error. */
int64_t tally_program_wait(int64_t program);
/* Sends the last values to the host and ends the session; returns 0 or an error. */
int64_t tally_close(int64_t session);
/* A sentence for people about an error above. */
const char *tally_strerror(int64_t error);
/* Writes text to standard output (1) or standard error (2); returns the bytes written. */
int64_t tally_write(int output, const char *text, size_t bytes);

/* How a bank lies in memory: docs/abi.md, "Logical counter bank". */
enum {
    TALLY_BANK_GROUP = 1,
    TALLY_BANK_TOTAL = 4,
    TALLY_BANK_BASE = 8,
    TALLY_BANK_ALWAYS_BASE = 16,
    TALLY_BANK_SCALE_BITS = 44,
    TALLY_BANK_HEADER = 24,
    TALLY_BANK_COUNTER = 8
};
#define TALLY_BANK_NOBODY 0xffffffffu
#define TALLY_BANK_ALWAYS 0xfffffff0u

/* The low half of a counter. */
static inline uint32_t tally_rdpmc(uint32_t index)
{
    uint32_t low, high;
    __asm__ volatile("rdpmc" : "=a"(low), "=d"(high) : "c"(index) : "memory");
    return low;
}

static inline uint64_t tally_counter(const uint64_t *bank, size_t event)
{
    const volatile uint64_t *header = bank;
    const volatile uint64_t *words = bank + TALLY_BANK_HEADER + TALLY_BANK_COUNTER * event;
    for (;;) {
        uint64_t sequence = header[0], place = words[3], group = header[TALLY_BANK_GROUP], value;
        uint32_t its = (uint32_t)place, index = (uint32_t)(place >> 32);
        if (its >= TALLY_BANK_ALWAYS) {
            size_t which = its - TALLY_BANK_ALWAYS;
            value = header[TALLY_BANK_TOTAL + which];
            if (group != TALLY_BANK_NOBODY)
                value += tally_rdpmc(index) - (uint32_t)header[TALLY_BANK_ALWAYS_BASE + which];
        } else {
            uint64_t events = words[0], scale = words[1], told = words[2];
            if (its == group)
                events += tally_rdpmc(index) - (uint32_t)header[TALLY_BANK_BASE + index];
            value = (uint64_t)((unsigned __int128)events * scale >> TALLY_BANK_SCALE_BITS);
            if (value < told)
                value = told;
        }
        __asm__ volatile("" ::: "memory");
        if (sequence % 2 == 0 && sequence == header[0])
            return value;
    }
}

static inline double tally_counter_error(const uint64_t *bank, size_t event)
{
    const uint64_t *words = bank + TALLY_BANK_HEADER + TALLY_BANK_COUNTER * event;
    double half_width = 0;
    if ((uint32_t)words[3] < TALLY_BANK_ALWAYS)
        __builtin_memcpy(&half_width, &words[4], sizeof half_width);
    return half_width;
}

#ifdef __cplusplus
}
#endif

#endif /* TALLY_H */
