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

/* Which groups get how many slices of a round: as many as was asked for each; or at least that, and
 * as many again go to those whose events are least certain. */
enum tally_shares { TALLY_PLANNED = 0, TALLY_ADAPTIVE = 1 };

struct tally_config {
    uint64_t mode;         /* enum tally_mode */
    uint64_t slice_unit;   /* enum tally_slice_unit */
    uint64_t slice_length; /* 5,000 to 2^30; 200,000 cycles is a good default */
    uint64_t budget_ppm;   /* the share of the program's time that the engine may take, in parts per
                            * million; 20,000 is a good default, 1,000,000 is no limit */
    uint64_t shares;       /* enum tally_shares */
};

enum tally_kind { TALLY_EXACT = 1, TALLY_ESTIMATED = 2, TALLY_NOT_MEASURED = 3 };

/* Why an event was not measured: the session has not run, or fewer than two slices were counted. */
enum tally_reason { TALLY_NOT_STARTED = 0, TALLY_TOO_FEW_SLICES = 1 };

/* A logical counter's value and what stands behind it. */
struct tally_reading {
    uint64_t kind;           /* enum tally_kind: tells which of the next fields hold */
    uint64_t count;          /* events: exact, or the estimate; not measured: enum
                              * tally_reason */
    double stderr_events;    /* estimated: standard error, in events, of the estimate before it was
                              * moved to obey a bound */
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
    uint64_t records;       /* trace records of slices, written or lost for want of room */
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
    TALLY_NOT_A_PROGRAM = -2014,
    TALLY_NOT_PERMITTED = -2015,
    TALLY_TOO_MANY_THRESHOLDS = -2016,
    TALLY_TOO_MANY_SESSIONS = -2017,
    TALLY_TOO_MANY_PROGRAMS = -2018
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
/* Half the width of its 95 % interval, in events: 0 if it is exact, NaN while it is not known.
 * It is of the whole count: the difference of two values can be wrong by both errors together.
 * While the session counts, it is up to 8 turns of the scheduler, of 10 ms each, old; after
 * tally_stop, tally_stats or tally_read it is current. */
static inline double tally_counter_error(const uint64_t *bank, size_t event);
/* Stops all logical counters of a bank at once: what happens from here on is not in their
 * values. No system call. */
static inline void tally_bank_stop(const uint64_t *bank);
/* Starts them, for the first time or again: a system call only where the kernel has taken them
 * off the hardware meanwhile. Returns 0 or an error. */
static inline int64_t tally_bank_start(int64_t session, const uint64_t *bank);
/* Once, when the event's logical counter, as the session's bank shows it, has come to `count`:
 * a record goes to the trace, and if handler is not null, the program is interrupted for it,
 * with the event and the count, and goes on where it was when it returns. It may be called
 * anywhere in the program, as a signal's handler, so it must not use what the program may be in
 * the middle of changing; other thresholds wait until it returns; what it does is counted. In
 * place of the threshold that the event has; none if count is TALLY_NO_THRESHOLD. After
 * tally_map; returns 0 or an error. */
#define TALLY_NO_THRESHOLD UINT64_MAX
typedef void (*tally_handler)(size_t event, uint64_t count);
int64_t tally_threshold(int64_t session, size_t event, uint64_t count, tally_handler handler);
/* Notes what is running each time when the event's logical counter has gone on by period
 * (longer within the budget), give or take an eighth, in the trace and by address; 0 ends that.
 * Returns 0 or an error. */
int64_t tally_sample(int64_t session, size_t event, uint64_t period);
/* Writes the first n addresses with their samples, in no order, and returns how many there are,
 * or an error. Address 0 stands for samples that had none or no room. */
int64_t tally_samples(int64_t session, uint64_t (*addresses)[2], size_t n);
/* Puts all the events on counters at once, counted at a privilege (enum tally_mode) from 0 on,
 * and returns how many there are, or an error with its text. Nobody switches them and nothing
 * interrupts: the program reads each by tally_rdpmc of what is written to indices for it, which
 * has room for as many words as there are events. Not beside a session; TALLY_NOT_PERMITTED
 * unless the kernel was booted with paranoid=0. */
int64_t tally_direct_open(const char *events, uint64_t mode, uint64_t *indices, char *detail,
                          size_t detail_bytes);
/* Takes them away; returns 0 or an error. */
int64_t tally_direct_close(void);
/* Loads a program of the ramdisk, which begins with tally_program_run, and returns its number,
 * or an error with its text: words are its name and arguments, each ended by a zero byte. */
int64_t tally_program_load(const char *words, size_t bytes, char *detail, size_t detail_bytes);
/* Lets it begin; returns 0 or an error. */
int64_t tally_program_run(int64_t program);
/* Waits for its end, whatever signals come meanwhile; returns its status, 0 to 255, or an error. */
int64_t tally_program_wait(int64_t program);
/* Sends the last values to the host and ends the session; returns 0 or an error. */
int64_t tally_close(int64_t session);
/* A sentence for people about an error above. */
const char *tally_strerror(int64_t error);
/* Writes text to standard output (1) or standard error (2); returns the bytes written. */
int64_t tally_write(int output, const char *text, size_t bytes);

/* How a bank lies in memory: docs/abi.md, "Logical counter bank". */
enum {
    TALLY_BANK_USED = 0,
    TALLY_BANK_TOTAL = 4,
    TALLY_BANK_BASE = 8,
    TALLY_BANK_PINNED_RDPMC = 19,
    TALLY_BANK_HEADER = 32,
    TALLY_BANK_COUNTER = 16,
    TALLY_BANK_PAGE = 512,
    TALLY_BANK_PINNED_SLOT = 8,
    TALLY_BANK_SLOTS = 11,
    TALLY_BANK_RATE_BITS = 44,
    TALLY_COUNTER_RATE = 0,
    TALLY_COUNTER_PUBLISHED_MAX = 1,
    TALLY_COUNTER_ASSIGNMENT = 2,
    TALLY_COUNTER_SEEN_AT = 4,
    TALLY_COUNTER_HALF_WIDTH = 8,
    TALLY_COUNTER_HALF_WIDTH_AT = 9,
    TALLY_COUNTER_DRIFT = 10,
    TALLY_OWN_CONTROL = 0,
    TALLY_OWN_SKIPPED = 8,
    TALLY_OWN_HELD = 24
};
#define TALLY_CONTROL_DETACHED 0xffffffffu
#define TALLY_CONTROL_BUSY 0xfffffffeu
#define TALLY_CONTROL_STOPPED 0x80000000u
#define TALLY_CONTROL_RESTARTED (1ull << 32)

static inline uint64_t tally_rdpmc(uint32_t index)
{
    uint32_t low, high;
    __asm__ volatile("rdpmc" : "=a"(low), "=d"(high) : "c"(index) : "memory");
    return (uint64_t)high << 32 | low;
}

/* A word of the program's own page, which lies before the bank. */
static inline volatile uint64_t *tally_own(const uint64_t *bank, size_t word)
{
    return (volatile uint64_t *)(uintptr_t)bank - TALLY_BANK_PAGE + word;
}

/* The value of an event's counter: exact, or an estimate, and never less than any before it. Its
 * basis' count goes to `count`. */
static inline uint64_t tally_counter_of(const uint64_t *bank, size_t event, uint64_t *count)
{
    const volatile uint64_t *header = bank;
    const volatile uint64_t *words = bank + TALLY_BANK_HEADER + TALLY_BANK_COUNTER * event;
    const volatile uint64_t *own = tally_own(bank, 0);
    for (;;) {
        uint64_t control = own[TALLY_OWN_CONTROL], basis = words[TALLY_COUNTER_ASSIGNMENT], since = 0;
        uint32_t state = (uint32_t)control;
        size_t slot = (uint16_t)basis, sum = (uint16_t)(basis >> 16);
        if (state == TALLY_CONTROL_BUSY)
            continue;
        if (!(state & TALLY_CONTROL_STOPPED))
            since = (uint32_t)(tally_rdpmc((uint32_t)(basis >> 32)) -
                               (uint32_t)header[TALLY_BANK_BASE + slot] -
                               (uint32_t)own[TALLY_OWN_SKIPPED + slot]);
        else if (state != TALLY_CONTROL_DETACHED)
            since = (uint32_t)own[TALLY_OWN_HELD + slot];
        *count = header[sum] + since;
        uint64_t value = (uint64_t)((unsigned __int128)*count * words[TALLY_COUNTER_RATE] >>
                                    TALLY_BANK_RATE_BITS);
        uint64_t max = words[TALLY_COUNTER_PUBLISHED_MAX];
        if (control == own[TALLY_OWN_CONTROL])
            return value < max ? max : value;
    }
}

static inline uint64_t tally_counter(const uint64_t *bank, size_t event)
{
    uint64_t count;
    return tally_counter_of(bank, event, &count);
}

static inline int tally_exchange(volatile uint64_t *word, uint64_t old, uint64_t new_value)
{
    return __atomic_compare_exchange_n(word, &old, new_value, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/* Notes what each counter in use shows beyond its base and its word of `less`; whether nothing came
 * between. */
static inline int tally_note(const uint64_t *bank, size_t to, size_t less, uint64_t turn)
{
    const volatile uint64_t *header = bank;
    for (size_t slot = 0; slot < TALLY_BANK_SLOTS; slot++) {
        volatile uint64_t *word = tally_own(bank, to + slot);
        uint64_t old = *word;
        if (!(header[TALLY_BANK_USED] >> slot & 1))
            continue;
        if (*tally_own(bank, TALLY_OWN_CONTROL) != turn)
            return 0;
        uint32_t count = (uint32_t)tally_rdpmc(slot < TALLY_BANK_PINNED_SLOT
                                         ? (uint32_t)slot
                                         : (uint32_t)header[TALLY_BANK_PINNED_RDPMC + slot -
                                                            TALLY_BANK_PINNED_SLOT]);
        count -= (uint32_t)header[TALLY_BANK_BASE + slot];
        count -= (uint32_t)*tally_own(bank, less + slot);
        if (!tally_exchange(word, old, turn >> 32 << 32 | count))
            return 0;
    }
    return 1;
}

static inline void tally_bank_stop(const uint64_t *bank)
{
    volatile uint64_t *word = tally_own(bank, TALLY_OWN_CONTROL);
    for (;;) {
        uint64_t turn = *word;
        if ((uint32_t)turn == TALLY_CONTROL_BUSY)
            continue;
        if ((uint32_t)turn & TALLY_CONTROL_STOPPED)
            return;
        if (tally_note(bank, TALLY_OWN_HELD, TALLY_OWN_SKIPPED, turn) &&
            tally_exchange(word, turn, turn | TALLY_CONTROL_STOPPED))
            return;
    }
}

static inline int64_t tally_bank_start(int64_t session, const uint64_t *bank)
{
    volatile uint64_t *word = tally_own(bank, TALLY_OWN_CONTROL);
    for (;;) {
        uint64_t turn = *word;
        if ((uint32_t)turn == TALLY_CONTROL_BUSY)
            continue;
        if ((uint32_t)turn == TALLY_CONTROL_DETACHED) {
            int64_t result = tally_start(session);
            /* Another thread, or a handler, came between and started them. */
            if (result == TALLY_WRONG_STATE)
                continue;
            return result;
        }
        if (!((uint32_t)turn & TALLY_CONTROL_STOPPED))
            return 0;
        if (tally_note(bank, TALLY_OWN_SKIPPED, TALLY_OWN_HELD, turn) &&
            tally_exchange(word, turn, (turn & ~(uint64_t)TALLY_CONTROL_STOPPED) | TALLY_CONTROL_RESTARTED))
            return 0;
    }
}

static inline double tally_double(uint64_t bits)
{
    double value;
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}

/* Half the width of the 95 % interval of an event's value now, in events; NaN while it is not
 * known. */
static inline double tally_counter_error(const uint64_t *bank, size_t event)
{
    const volatile uint64_t *words = bank + TALLY_BANK_HEADER + TALLY_BANK_COUNTER * event;
    uint64_t at = words[TALLY_COUNTER_HALF_WIDTH_AT], seen = words[TALLY_COUNTER_SEEN_AT], count, value;
    value = tally_counter_of(bank, event, &count);
    double growth = (double)count / (at ? (double)at : 1.0);
    uint64_t estimate = (uint64_t)((unsigned __int128)count * words[TALLY_COUNTER_RATE] >>
                                   TALLY_BANK_RATE_BITS);
    return tally_double(words[TALLY_COUNTER_HALF_WIDTH]) * (1 + (growth > 1 ? growth : 1)) / 2 +
           tally_double(words[TALLY_COUNTER_DRIFT]) * (double)(count > seen ? count - seen : 0) +
           (double)(value > estimate ? value - estimate : 0);
}

#ifdef __cplusplus
}
#endif

#endif /* TALLY_H */
