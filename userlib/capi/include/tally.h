/* Long because the whole interface is in one file, which C programs include. */
/* Logical performance counters for C and C++ programs that run under Tally.
 *
 * Link a static program with libtally.a, with any C library, with threads or without:
 *   cc -static program.c -ltally
 * A program without a C library takes its entry point (_start) from libtally_start.a:
 *   cc -static -nostdlib -ffreestanding program.c -ltally -ltally_start
 *
 * On kernels other than Tally every function returns TALLY_NOT_TALLY, and the program can continue.
 * Every value is marked as exact, estimated with an error, or not measured. Errors are negative
 * numbers of enum tally_error; tally_open also writes a message.
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

/* Privilege at which events are counted: ring 3, ring 0, or both. */
enum tally_mode { TALLY_USER = 0, TALLY_KERNEL = 1, TALLY_FULL = 2 };

/* Unit of a slice's length. With TALLY_AUTO the engine uses the shortest slices, in cycles, that
 * keep the budget; the length is 0. */
enum tally_slice_unit { TALLY_CYCLES = 0, TALLY_INSTRUCTIONS = 1, TALLY_AUTO = 2 };

/* Division of a round's slices among groups. Planned: each group gets the slices that the list asks
 * for. Adaptive: a round has twice as many slices, and the engine gives the additional ones to the
 * groups whose events have the largest relative errors. Paired: planned shares, in pairs of rounds,
 * one with slices as long as requested and one with slices four times as long, in random order. */
enum tally_shares { TALLY_PLANNED = 0, TALLY_ADAPTIVE = 1, TALLY_PAIRED = 2 };

struct tally_config {
    uint64_t mode;         /* enum tally_mode */
    uint64_t slice_unit;   /* enum tally_slice_unit */
    uint64_t slice_length; /* 1,800 to 2^30; 0 with TALLY_AUTO */
    uint64_t budget_ppm;   /* maximum share of the program's time for the engine, in parts per
                            * million, 1 to 1,000,000; default: 20,000; no limit: 1,000,000 */
    uint64_t shares;       /* enum tally_shares */
    uint64_t exclusive;    /* flags: 1: no other session may count the program while this one is
                            * open; TALLY_UNIT */
};

/* Flag of exclusive: the counter unit counts the list too (tally_unit_counts). Only the virtual PMU
 * has it. */
enum { TALLY_UNIT = 8 };

enum tally_kind { TALLY_EXACT = 1, TALLY_ESTIMATED = 2, TALLY_NOT_MEASURED = 3 };

/* Reason why an event was not measured: the session has not run; the event was counted in fewer
 * than four slices; a counter has stopped counting since the session was opened; the event counted
 * nothing although events that are a part of it were counted. */
enum tally_reason {
    TALLY_NOT_STARTED = 0,
    TALLY_TOO_FEW_SLICES = 1,
    TALLY_COUNTER_FAILED = 2,
    TALLY_COUNTS_NOTHING = 3
};

/* Value of a logical counter, with its error and its coverage. */
struct tally_reading {
    uint64_t kind;           /* enum tally_kind: determines the valid fields below */
    uint64_t count;          /* exact, estimated: events; not measured: enum tally_reason */
    double stderr_events;    /* estimated: standard error, in events, of the estimate before its
                              * correction by bounds (docs/abi.md, "Words") */
    double half_width_95;    /* estimated: half width of the 95 % interval, in events */
    uint64_t counted_cycles; /* cycles for which the event was counted */
    uint64_t total_cycles;   /* cycles for which the session ran */
    uint64_t slices;         /* slices in which the event was counted */
    uint64_t counted;        /* events in these slices: a lower bound of the value and of its 95 %
                              * interval */
};

/* Statistics of a session and of the engine's work for it, since the session opened. */
struct tally_stats {
    uint64_t groups;        /* event groups */
    uint64_t slices;        /* slices ended */
    uint64_t rounds;        /* rounds ended */
    uint64_t pmis;          /* overflow interrupts that ended a slice */
    uint64_t spurious_pmis; /* overflow interrupts without an overflow of this session */
    uint64_t msr_accesses;  /* MSR reads and writes in the overflow path */
    uint64_t rdpmcs;        /* RDPMC instructions in the overflow path */
    uint64_t cycles;        /* counted, at the session's privilege */
    uint64_t instructions;  /* counted, at the session's privilege */
    uint64_t engine_ticks;  /* TSC ticks spent in the overflow path */
    uint64_t session_ticks; /* TSC ticks for which the session ran */
    uint64_t records;       /* trace records of slices, lost ones included */
    uint64_t lengthened;    /* slices that were lengthened to keep the budget */
    uint64_t switch_cycles; /* core cycles of a group switch; 0 if they are not known */
    uint64_t lost_pmis;     /* slices whose overflow interrupt never came */
    uint64_t interruptions; /* interrupts and exceptions in ring 3, other than PMIs */
    uint64_t stopped_cycles; /* not in any count: cycles after the program stopped its bank and
                              * before the kernel detected it */
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
    TALLY_TOO_MANY_SESSIONS = -2017,
    TALLY_TOO_MANY_PROGRAMS = -2018,
    TALLY_NOT_TALLY = -2019
};

/* Opens a session on a list of event names, separated by commas or white space. If config is null,
 * the session counts in ring 3 with the default values. Returns the session's number or an error.
 * On error it writes a message to detail: up to detail_bytes bytes, the last of them zero. detail
 * may be null if detail_bytes is 0. A session counts all threads of the program. A program has up
 * to 8 sessions on itself; other programs may open up to 8 more on it, each counting ring 3. The
 * sessions take turns on the counters, so that only instructions, cycles and reference cycles stay
 * exact: a session that is opened beside others has what that costs in detail, before it counts,
 * where it is empty otherwise. */
int64_t tally_open(const char *events, const struct tally_config *config, char *detail,
                   size_t detail_bytes);
/* Opens a session on a program that the caller loaded. The session counts while that program runs,
 * and can be read after its end. Its bank, if it is mapped, holds the counts up to the end of the
 * last slice or scheduler tick (10 ms), without stopping the program. Otherwise like tally_open. */
int64_t tally_open_on(int64_t program, const char *events, const struct tally_config *config,
                      char *detail, size_t detail_bytes);
/* Opens a session that counts whole CPUs in ring 3, whichever programs they run. cpus is null
 * for all CPUs, or points to TALLY_CPU_SET_WORDS words with a bit for each, as a cpu_set_t has: CPU
 * n is bit n % 64 of word n / 64. Each CPU is an instance (tally_instance), with its own bank
 * (tally_map_cpu) and thresholds (tally_cpu_threshold), by its index in the order of the numbers.
 * TALLY_NOT_PERMITTED unless the kernel was booted with paranoid=0. tally_read is refused with
 * TALLY_WRONG_STATE, and so is tally_stats while the session counts. Otherwise like tally_open. */
#define TALLY_CPU_SET_WORDS 16
int64_t tally_open_cpus(const uint64_t *cpus, const char *events,
                        const struct tally_config *config, char *detail, size_t detail_bytes);
/* Writes the instance with this index of a session that counts CPUs or threads separately, with its
 * first n readings; writes nothing if there is no such instance. Publishes the half widths of a
 * CPU's bank. Returns the number of instances or an error. */
struct tally_instance {
    uint64_t number;  /* number of the CPU, or of the thread */
    char name[16];    /* thread name, padded with zeros; zeros if it is the program's name */
    uint64_t user_ns; /* time in ring 3: of the thread, or of the CPU while it was counted */
    uint64_t system_ns;
    uint64_t faults;
    uint64_t waits;
    uint64_t preemptions;
    uint64_t migrations; /* to another CPU */
};
int64_t tally_instance(int64_t session, size_t index, struct tally_instance *instance,
                       struct tally_reading *readings, size_t n);
/* Starts or resumes counting. Returns 0 or an error. */
int64_t tally_start(int64_t session);
/* Stops counting. Returns 0 or an error. */
int64_t tally_stop(int64_t session);
/* Writes the first n readings, in the order of the list. Returns the number of events or an error.
 * May be called while the session counts. */
int64_t tally_read(int64_t session, struct tally_reading *readings, size_t n);
/* Writes the first n counts of the counter unit, in the order of the list, all exact, for a session
 * with TALLY_UNIT. Returns the number of events or an error. */
int64_t tally_unit_counts(int64_t session, uint64_t *counts, size_t n);
/* Writes the session's statistics. Returns 0 or an error. */
int64_t tally_stats(int64_t session, struct tally_stats *stats);
/* Maps the session's logical counter bank, so that the program can read it without system calls.
 * Must be called before the session is started. Returns the address of the bank, which is valid
 * until the session is closed, or an error. The functions below accept an error instead of a bank:
 * a counter is 0 then, its error NaN. */
int64_t tally_map(int64_t session);
/* Maps the bank of a CPU of a session on whole CPUs, by its index among the instances. The bank
 * holds the counts up to the end of the CPU's last slice, or of the last scheduler tick (10 ms);
 * tally_bank_start and tally_bank_stop start and stop the whole session. Otherwise like tally_map;
 * TALLY_BAD_ARGUMENT: there is no such CPU. */
int64_t tally_map_cpu(int64_t session, size_t index);
/* Reads the logical counter of an event, by its index in the list: the events so far, exact or
 * estimated; 0 while nothing is known. Values never decrease. No system call. */
static inline uint64_t tally_counter(const uint64_t *bank, size_t event);
/* Reads the half width of the 95 % interval of that value, in events: 0 if it is exact, NaN while
 * it is not known. The interval is that of the whole count: the error of a difference of two values
 * is at most the sum of both half widths. While the session counts, the half width is computed from
 * numbers that are up to 8 scheduler ticks (80 ms) old; after tally_stop, tally_stats or tally_read
 * they are current. */
static inline double tally_counter_error(const uint64_t *bank, size_t event);
/* Reads how often a threshold of an event has fired, also for a program that set it on another
 * program. */
static inline uint64_t tally_counter_fired(const uint64_t *bank, size_t event);
/* A logical counter with a chosen start value; see tally_counter_preload. */
struct tally_preload {
    uint64_t offset; /* offset that is added to the counter's value */
    double error;    /* half width of the counter's 95 % interval when it was preloaded */
};
/* Preloads an event's counter: tally_preloaded returns `value` now, and counts on from it. The
 * bank's counter, its thresholds and samples and tally_read are unchanged, so one event can have
 * any number of preloads. A value of 0 resets the counter. */
static inline struct tally_preload tally_counter_preload(const uint64_t *bank, size_t event,
                                                         uint64_t value);
/* Reads the value of a preloaded counter, modulo 2^64: exact, or the difference of two estimates of
 * the whole count added to the preloaded value. */
static inline uint64_t tally_preloaded(const uint64_t *bank, size_t event,
                                       const struct tally_preload *preload);
/* Reads the half width of the 95 % interval of that value: the sum of those of the whole count now
 * and when it was preloaded. */
static inline double tally_preloaded_error(const uint64_t *bank, size_t event,
                                           const struct tally_preload *preload);
/* Returns the count, for tally_threshold, at which a preloaded counter reaches `value`. */
static inline uint64_t tally_preloaded_count(const struct tally_preload *preload, uint64_t value);
/* Stops all logical counters of a bank at once: their values contain no later event. Makes a system
 * call only if the session is on no counter: it is stopped, or another session has its turn. An
 * interrupt during the call makes it begin again. */
void tally_bank_stop(const uint64_t *bank);
/* Starts all logical counters of a bank, for the first time or again. Makes a system call only if
 * the session is on no CPU: before the first start, and after a slice or the program's turn ended
 * while the counters were stopped. Returns 0 or an error. */
int64_t tally_bank_start(int64_t session, const uint64_t *bank);
/* Sets the event's threshold, and replaces an earlier one; TALLY_NO_THRESHOLD removes it. The
 * threshold fires once, when the event's logical counter in the bank reaches count. Then the kernel
 * writes a trace record and, if handler is not null, interrupts the program and calls handler with
 * the event and the count. When the handler returns, the program continues where it was
 * interrupted. The kernel can call the handler at any instruction, so the rules for signal handlers
 * apply to it. Other thresholds stay pending until the handler returns. The handler's own events
 * are counted. The session must be mapped (tally_map). For a session on another program handler
 * must be null, and the threshold takes effect at the end of a slice. Returns 0 or an error. */
#define TALLY_NO_THRESHOLD UINT64_MAX
typedef void (*tally_handler)(size_t event, uint64_t count);
int64_t tally_threshold(int64_t session, size_t event, uint64_t count, tally_handler handler);
/* Sets the threshold of an event of a CPU, by its index among the instances, in a session on whole
 * CPUs. The handler runs in the program that opened the session, on any CPU that runs it, and later
 * than the event: at that CPU's next interrupt. The session must be mapped (tally_map_cpu).
 * Otherwise like tally_threshold. */
int64_t tally_cpu_threshold(int64_t session, size_t index, size_t event, uint64_t count,
                            tally_handler handler);
/* Takes a sample each time the event's logical counter has counted another period: writes a trace
 * record and counts the address in the session's histogram. The period varies at random by up to an
 * eighth in either direction, and the engine lengthens it to keep the budget. A period of 0 ends
 * sampling. Returns 0 or an error. */
int64_t tally_sample(int64_t session, size_t event, uint64_t period);
/* Samples like tally_sample; each sample of the session also copies the thread's registers and
 * stack_bytes bytes of its stack, at most 32768, to the trace, if there is one. The host derives
 * the callers from them (cargo xtask report, script, export). */
int64_t tally_sample_with_stack(int64_t session, size_t event, uint64_t period,
                                uint64_t stack_bytes);
/* Writes the first n entries of the histogram, address and samples, in no particular order. Returns
 * the number of entries or an error. The entry with address 0 counts the samples without an
 * address, and those whose address had no room in the histogram. */
int64_t tally_samples(int64_t session, uint64_t (*addresses)[2], size_t n);
/* Writes the first n words of the calling thread's counts since its first call, not scaled: its
 * number, nanoseconds since boot, its cycles and instructions, and for each event its count and
 * the cycles and instructions for which it was counted. Returns the number of events or an error.
 * Named regions (tally_region.h) and parts (tally_part.h) compute estimates from them. */
int64_t tally_thread(int64_t session, uint64_t *words, size_t n);
/* Assigns a counter to each event of the list for this program alone, and counts from 0 at a
 * privilege (enum tally_mode): direct mode. Nothing is multiplexed, and no overflow interrupt
 * occurs. Writes the argument of tally_rdpmc for each event to indices, which must have room for
 * one word per event. Returns the number of events, or an error with a message in detail.
 * TALLY_BUSY if the program has a session; TALLY_NOT_PERMITTED unless the kernel was booted with
 * paranoid=0. */
int64_t tally_direct_open(const char *events, uint64_t mode, uint64_t *indices, char *detail,
                          size_t detail_bytes);
/* Ends direct mode. Returns 0 or an error. */
int64_t tally_direct_close(void);
/* Loads a program of the ramdisk, which tally_program_run starts. words are its name and its
 * arguments, each ended by a zero byte. Returns the program's number, or an error with a message in
 * detail. */
int64_t tally_program_load(const char *words, size_t bytes, char *detail, size_t detail_bytes);
/* Starts a loaded program. Returns 0 or an error. */
int64_t tally_program_run(int64_t program);
/* Waits for a program's end; signals do not interrupt the wait. Returns its exit status, 0 to 255,
 * or an error. */
int64_t tally_program_wait(int64_t program);
/* Sends the last values to the host and closes the session. Returns 0 or an error. */
int64_t tally_close(int64_t session);
/* Returns the message of an error of enum tally_error. */
const char *tally_strerror(int64_t error);
/* Writes text to standard output (1) or standard error (2). Returns the number of bytes written. */
int64_t tally_write(int output, const char *text, size_t bytes);

/* For programs that make the system calls of docs/abi.md themselves: the two parts of
 * SESSION_OPEN's result. The result itself is not a session number; other calls refuse it with
 * TALLY_NO_SESSION. */
/* Returns the session, or the error. */
static inline int64_t tally_opened_session(int64_t result)
{
    return result < 0 ? result : (int64_t)(uint32_t)result;
}
/* Returns the number of events, or the error. */
static inline int64_t tally_opened_events(int64_t result)
{
    return result < 0 ? result : result >> 32;
}

/* The layout of a bank: docs/abi.md, "Logical counter bank". */
enum {
    TALLY_BANK_TOTAL = 4,
    TALLY_BANK_HEADER = 48,
    TALLY_BANK_COUNTER = 16,
    TALLY_BANK_PAGE = 512,
    TALLY_BANK_RATE_BITS = 44,
    TALLY_COUNTER_RATE = 0,
    TALLY_COUNTER_PUBLISHED_MAX = 1,
    TALLY_COUNTER_ASSIGNMENT = 2,
    TALLY_COUNTER_SEEN_AT = 4,
    TALLY_COUNTER_SLICES = 5,
    TALLY_COUNTER_HALF_WIDTH = 8,
    TALLY_COUNTER_HALF_WIDTH_AT = 9,
    TALLY_COUNTER_DRIFT = 10,
    TALLY_COUNTER_FIRED = 12,
    TALLY_COUNTER_RATE_AT = 13,
    TALLY_COUNTER_SLICES_AT = 14,
    TALLY_OWN_CONTROL = 0,
    TALLY_OWN_ORIGIN = 8,
    TALLY_OWN_HELD = 24
};
#define TALLY_CONTROL_DETACHED 0xffffffffu
#define TALLY_CONTROL_BUSY 0xfffffffeu
#define TALLY_CONTROL_STOPPED 0x80000000u

__extension__ typedef unsigned __int128 tally_u128;

static inline uint64_t tally_rdpmc(uint32_t index)
{
    uint32_t low, high;
    __asm__ volatile("rdpmc" : "=a"(low), "=d"(high) : "c"(index) : "memory");
    return (uint64_t)high << 32 | low;
}

/* Returns a word of the program's own page, which precedes the bank. */
static inline volatile uint64_t *tally_own(const uint64_t *bank, size_t word)
{
    return (volatile uint64_t *)(uintptr_t)bank - TALLY_BANK_PAGE + word;
}

/* Returns whether an address is not a bank, but an error of tally_map, or null. */
static inline int tally_is_no_bank(const uint64_t *bank)
{
    return (int64_t)(uintptr_t)bank <= 0;
}

/* Reads the value of an event's counter, and writes the count of its basis to `count`. Values never
 * decrease. */
static inline uint64_t tally_counter_of(const uint64_t *bank, size_t event, uint64_t *count)
{
    const volatile uint64_t *header = bank;
    const volatile uint64_t *words = bank + TALLY_BANK_HEADER + TALLY_BANK_COUNTER * event;
    const volatile uint64_t *own = tally_own(bank, 0);
    if (tally_is_no_bank(bank))
        return *count = 0;
    for (;;) {
        uint64_t control = own[TALLY_OWN_CONTROL], basis = words[TALLY_COUNTER_ASSIGNMENT], since = 0;
        uint32_t state = (uint32_t)control;
        size_t slot = (uint16_t)basis, sum = (uint16_t)(basis >> 16);
        if (state == TALLY_CONTROL_BUSY)
            continue;
        if (!(state & TALLY_CONTROL_STOPPED))
            since = (uint32_t)(tally_rdpmc((uint32_t)(basis >> 32)) -
                               (uint32_t)own[TALLY_OWN_ORIGIN + slot]);
        else if (state != TALLY_CONTROL_DETACHED)
            since = (uint32_t)own[TALLY_OWN_HELD + slot];
        *count = header[sum] + since;
        uint64_t value = (uint64_t)((tally_u128)*count * words[TALLY_COUNTER_RATE] >>
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

static inline uint64_t tally_counter_fired(const uint64_t *bank, size_t event)
{
    const volatile uint64_t *words = bank + TALLY_BANK_HEADER + TALLY_BANK_COUNTER * event;
    return tally_is_no_bank(bank) ? 0 : words[TALLY_COUNTER_FIRED];
}

static inline double tally_double(uint64_t bits)
{
    double value;
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}

/* Reads the half width of the 95 % interval of an event's value, in events; NaN while it is not
 * known. */
static inline double tally_counter_error(const uint64_t *bank, size_t event)
{
    const volatile uint64_t *words = bank + TALLY_BANK_HEADER + TALLY_BANK_COUNTER * event;
    if (tally_is_no_bank(bank))
        return __builtin_nan("");
    uint64_t at = words[TALLY_COUNTER_HALF_WIDTH_AT], seen = words[TALLY_COUNTER_SEEN_AT], count, value;
    value = tally_counter_of(bank, event, &count);
    double growth = (double)count / (at ? (double)at : 1.0);
    uint64_t rate = words[TALLY_COUNTER_RATE], rate_at = words[TALLY_COUNTER_RATE_AT];
    uint64_t estimate = (uint64_t)((tally_u128)count * rate >> TALLY_BANK_RATE_BITS);
    double of_seen =
        tally_double(words[TALLY_COUNTER_HALF_WIDTH]) * (1 + (growth > 1 ? growth : 1)) / 2;
    /* Change of the value by the slices since then, divided by the root of their number. */
    uint64_t slices = words[TALLY_COUNTER_SLICES], slices_at = words[TALLY_COUNTER_SLICES_AT];
    uint64_t change = rate > rate_at ? rate - rate_at : rate_at - rate;
    double root = slices > slices_at ? (double)(slices - slices_at) : 1.0;
    /* Not the C library's sqrt, which a program may not have. */
    __asm__("sqrtsd %0, %0" : "+x"(root));
    double moved = (double)(uint64_t)((tally_u128)count * change >> TALLY_BANK_RATE_BITS) /
                   (double)(uint64_t)root;
    return (moved > of_seen ? moved : of_seen) +
           tally_double(words[TALLY_COUNTER_DRIFT]) * (double)(count > seen ? count - seen : 0) +
           (double)(value > estimate ? value - estimate : 0);
}

static inline struct tally_preload tally_counter_preload(const uint64_t *bank, size_t event,
                                                         uint64_t value)
{
    /* In this order: the half width belongs to a value that is at least as old. */
    double error = tally_counter_error(bank, event);
    struct tally_preload preload = { value - tally_counter(bank, event), error };
    return preload;
}

static inline uint64_t tally_preloaded(const uint64_t *bank, size_t event,
                                       const struct tally_preload *preload)
{
    return tally_counter(bank, event) + preload->offset;
}

static inline double tally_preloaded_error(const uint64_t *bank, size_t event,
                                           const struct tally_preload *preload)
{
    return tally_counter_error(bank, event) + preload->error;
}

static inline uint64_t tally_preloaded_count(const struct tally_preload *preload, uint64_t value)
{
    return value - preload->offset;
}

#ifdef __cplusplus
}
#endif

#endif /* TALLY_H */
