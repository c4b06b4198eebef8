/* Counts of one thread from a moment on: to reset, to read and to add up. Any number of parts can
 * be of one session; the session itself goes on. The thread that makes a part is the one that is
 * counted, and the only one that may use it: calls of others return TALLY_WRONG_STATE. */
#ifndef TALLY_PART_H
#define TALLY_PART_H

#include "tally.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Counts the calling thread from here on. Returns the part's number, from 1, or an error. */
int64_t tally_part(int64_t session);
/* Counts from here on, from 0. Returns 0 or an error. */
int64_t tally_part_reset(int64_t part);
/* Ends a stretch, adds it, and begins the next. The errors of events that share counters come from
 * the spread between stretches, so several short ones are better than a long one. Returns 0 or an
 * error. */
int64_t tally_part_accumulate(int64_t part);
/* Ends a stretch without adding it, and begins the next. Returns 0 or an error. */
int64_t tally_part_skip(int64_t part);
/* Writes the first n readings of the stretches that were added and of the present one, in the order
 * of the session's list. An event that was on a counter all that time is exact. Another needs four
 * stretches in which it was counted, or one in which it was counted for four slices. Returns the
 * number of events or an error. */
int64_t tally_part_read(int64_t part, struct tally_reading *readings, size_t n);
/* Ends the part. Its number may be given to another. Returns 0 or an error. */
int64_t tally_part_close(int64_t part);

#ifdef __cplusplus
}
#endif

#endif
