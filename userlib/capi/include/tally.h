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
    TALLY_BUSY = -2011
};

/* Opens a session on a list of event names, separated by commas or white space, and returns its
 * number, or an error. On error, up to detail_bytes bytes of text, ended by a zero byte, say what
 * went wrong; detail may be null if detail_bytes is 0. A program has one session at a time. */
int64_t tally_open(const char *events, const struct tally_config *config, char *detail,
                   size_t detail_bytes);
/* Begins to count, or goes on; returns 0 or an error. */
int64_t tally_start(int64_t session);
/* Pauses counting; returns 0 or an error. */
int64_t tally_stop(int64_t session);
/* Writes the first n readings, in the order of the list, and returns how many events there are, or
 * an error. May be called while counting. */
int64_t tally_read(int64_t session, struct tally_reading *readings, size_t n);
/* Writes the engine's own numbers; returns 0 or an error. */
int64_t tally_stats(int64_t session, struct tally_stats *stats);
/* Sends the last values to the host and ends the session; returns 0 or an error. */
int64_t tally_close(int64_t session);
/* A sentence for people about an error above. */
const char *tally_strerror(int64_t error);
/* Writes text to standard output (1) or standard error (2); returns the bytes written. */
int64_t tally_write(int output, const char *text, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif /* TALLY_H */
