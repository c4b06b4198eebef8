/* Named regions of C and C++ programs: the number of visits of each thread, and the counts during
 * them.
 *
 *   tally_regions_print_at_exit();
 *   TALLY_REGION("parse") {
 *       ...
 *   }
 *
 * Regions may nest, repeat, and run in several threads at the same time. A count is that of the
 * thread alone, without events of other threads. An outer region includes the counts of the inner
 * ones, and those of the library's own work at their ends. A region's own two ends are in its count
 * too: some 160 instructions and 40 branches for each visit, which is most of a short one. A region
 * that is entered again before its end counts from the outermost start to its end, once.
 *
 * On kernels other than Tally every function returns TALLY_NOT_TALLY, and the program can continue.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef TALLY_REGION_H
#define TALLY_REGION_H

#include "tally.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Totals of a region for one thread, or for all together, over the visits that have ended. */
struct tally_region {
    uint64_t calls;   /* visits that have ended, those inside another one of the region too */
    uint64_t time_ns; /* nanoseconds between entering and leaving, by the clock */
    uint64_t cycles;  /* cycles of ring 3 that the thread itself used */
    uint64_t events;  /* number of events of the session */
};

/* Opens the session of regions on a list of events; null: instructions, cycles, branches, misses of
 * branches, L1 data cache and data TLB, and loads. Without this call the first region opens the
 * session on that list. Regions have one session at a time. Returns 0, or an error with a message
 * in detail, like tally_open. */
int64_t tally_regions_open(const char *events, char *detail, size_t detail_bytes);
/* Enters a region. Returns 0, or an error: the session cannot be opened, or memory is short. */
int64_t tally_region_start(const char *name);
/* Leaves the region that this thread entered last. Returns 0; TALLY_WRONG_STATE if that region has
 * another name or there is none. */
int64_t tally_region_stop(const char *name);
/* Reads a region for the thread with this number (gettid), or for all threads together (0): writes
 * its totals, and the readings of the first n events. Returns the number of events;
 * TALLY_BAD_ARGUMENT if no visit of such a region has ended. The reading of an event that shared
 * counters is an estimate from the visits, or parts of them, in which the event was counted. It
 * needs four such visits, or one of four slices. */
int64_t tally_region_read(const char *name, int64_t thread, struct tally_region *region,
                          struct tally_reading *readings, size_t n);
/* Prints all regions to standard output (1) or standard error (2), a line for each event. Returns 0
 * or an error. */
int64_t tally_regions_print(int output);
/* Ends the session of regions and discards the counts. No thread may be in a region. Returns 0 or
 * an error. */
int64_t tally_regions_close(void);
/* Runs the next statement or block as a region. The region ends with the block, even if break or
 * return leaves it, but not if longjmp does. */
#define TALLY_REGION(name)                                                                         \
    for (const char *tally_visit __attribute__((cleanup(tally_region_leave))) =                    \
                        tally_region_enter(name),                                                  \
                    *tally_once = tally_visit;                                                     \
         tally_once; tally_once = NULL)

/* The layout of the macro. */
static inline const char *tally_region_enter(const char *name)
{
    tally_region_start(name);
    return name;
}

static inline void tally_region_leave(const char **name)
{
    tally_region_stop(*name);
}

#if __STDC_HOSTED__
#include <stdio.h>
#include <stdlib.h>

static inline void tally_regions_print_now(void)
{
    fflush(stdout);
    tally_regions_print(1);
}

/* Prints all regions to standard output when the program exits. */
static inline void tally_regions_print_at_exit(void)
{
    atexit(tally_regions_print_now);
}
#endif

#ifdef __cplusplus
}

namespace tally {
/* Region from here to the end of the block. */
class region {
public:
    explicit region(const char *name) : name(name) { tally_region_start(name); }
    ~region() { tally_region_stop(name); }
    region(const region &) = delete;
    region &operator=(const region &) = delete;

private:
    const char *name;
};
}
#endif

#endif /* TALLY_REGION_H */
