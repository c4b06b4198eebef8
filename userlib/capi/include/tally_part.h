/* Counts of one thread from a moment on, with reset, reading and accumulation. One session can have
 * any number of parts; the session itself continues. Only the thread that makes a part is counted,
 * and only it may use the part: calls by other threads return TALLY_WRONG_STATE. */
#ifndef TALLY_PART_H
#define TALLY_PART_H

#include "tally.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Starts a part that counts the calling thread. Returns the part's number, from 1, or an error. */
int64_t tally_part(int64_t session);
/* Restarts counting from 0. Returns 0 or an error. */
int64_t tally_part_reset(int64_t part);
/* Ends a stretch, adds it, and begins the next. The errors of events that share counters are
 * computed from the spread between stretches, so several short stretches are better than a long
 * one. Returns 0 or an error. */
int64_t tally_part_accumulate(int64_t part);
/* Ends a stretch without adding it, and begins the next. Returns 0 or an error. */
int64_t tally_part_skip(int64_t part);
/* Writes the first n readings of the added stretches and the current one, in the order of the
 * session's list. An event that was on a counter for all that time is exact. Any other event needs
 * four stretches in which it was counted, or one in which it was counted for four slices. Returns
 * the number of events or an error. */
int64_t tally_part_read(int64_t part, struct tally_reading *readings, size_t n);
/* Ends the part. A later part may get its number. Returns 0 or an error. */
int64_t tally_part_close(int64_t part);

#ifdef __cplusplus
}
#endif

#endif
