/* Breakdown of the program's cycles, read by the program itself while it runs
 * (docs/guide/results.md, "Where the cycles go"). */
#ifndef TALLY_BREAKDOWN_H
#define TALLY_BREAKDOWN_H

#include "tally.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Maximum number of parts of a processor. */
#define TALLY_MOST_CYCLE_PARTS 16

/* A part of the cycles, by dispatch slots. */
struct tally_cycle_part {
    char name[40];                 /* cause of the cycles, such as "mispredicted branches";
                                    * "retiring" has the cycles that are not lost */
    double cycles;                 /* cycles; those of level 1 sum to all cycles */
    double half_width_95;          /* half width of the 95 % interval, in cycles */
    double share;                  /* share of all cycles, 0 to 1 */
    double cycles_per_instruction; /* the part's cycles for each instruction */
    uint32_t level;                /* from 1; part of the last one of the level above */
};

/* Opens a session, stopped, on the events by which the processor distinguishes the causes of
 * cycles, and maps its bank. Returns the session's number, for tally_start, tally_stop and the
 * functions here, or an error with its message in detail, for example if the processor has no such
 * events. */
int64_t tally_breakdown_open(const struct tally_config *config, char *detail, size_t detail_bytes);
/* Writes the first n parts of the cycles so far, from the bank without a system call, as a tree:
 * each part follows its parent, "retiring" first. Returns the number of parts, 0 while an event was
 * counted in too few slices for an estimate, or an error. */
int64_t tally_breakdown_read(int64_t session, struct tally_cycle_part *parts, size_t n);
/* Writes the kinds of cycles that the processor does not distinguish, as much as fits, and a zero
 * byte. Returns the number of bytes of the text or an error. */
int64_t tally_breakdown_together(int64_t session, char *text, size_t bytes);
/* Closes the session. Returns 0 or an error. */
int64_t tally_breakdown_close(int64_t session);

#ifdef __cplusplus
}
#endif

#endif
