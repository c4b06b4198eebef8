/* Phases of the program by its bottlenecks (docs/guide/phases.md): the current ones, and the
 * prediction of the next ones. */
#ifndef TALLY_PHASE_H
#define TALLY_PHASE_H

#include "tally.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Bottlenecks of a program. */
enum tally_bottleneck {
    TALLY_ITLB_MISSES,
    TALLY_L1I_MISSES,
    TALLY_L2_CODE_MISSES,
    TALLY_DIRECT_MISPREDICTIONS,
    TALLY_FULL_QUEUES,
    TALLY_PORT_CONTENTION,
    TALLY_EXPENSIVE_INSTRUCTIONS,
    TALLY_DTLB_MISSES,
    TALLY_L1D_MISSES,
    TALLY_L2_DATA_MISSES,
    TALLY_INDIRECT_MISPREDICTIONS,
    TALLY_NO_BOTTLENECK,
};

/* Configuration of the tracking of phases. */
struct tally_phase_config {
    /* Minimum number of instructions of an interval. */
    uint64_t interval_instructions;
    /* Width of the classes, in cycles per 1,000 instructions. */
    uint64_t unit;
    /* 0: costs in units, hashed; 1: the nearest of some means. */
    uint64_t classes;
    /* Predictor whose result is returned: 0 last value, 1 history, 2 Markov, 3 run length, 4 the
     * best. */
    uint64_t predictor;
};
#define TALLY_PHASE_DEFAULT { 5000000, 128, 1, 4 }

/* Last interval that has ended. */
struct tally_phase {
    /* Number of intervals that have ended; while it is 0, the other fields have no meaning. */
    uint64_t intervals;
    /* Number of detected changes. */
    uint64_t changes;
    /* Number of the phase; 32 if there were more than 32. */
    uint64_t phase;
    /* Predicted phase of the next interval. */
    uint64_t predicted;
    /* 1 if the error bars cross no boundary between phases. */
    uint64_t sure;
    /* Largest cost: enum tally_bottleneck. */
    uint64_t bottleneck;
    /* Core cycles and instructions of the interval. */
    uint64_t cycles;
    uint64_t instructions;
};

/* Tracks the program's phases from the next start on, in a session of this program on itself, some
 * of whose events are in the processor's cost model. If handler is not null, it is called when the
 * program's phase has changed, with the phase and the number of changes; the rules for handlers of
 * thresholds apply to it. Returns 0 or an error: the session is started, none of its events is in
 * the model, or an interval is shorter than a round. */
int64_t tally_track_phases(int64_t session, const struct tally_phase_config *config,
                           tally_handler handler);
/* Writes the last interval. Returns 0, or an error if phases are not tracked. */
int64_t tally_phase(int64_t session, struct tally_phase *phase);

#ifdef __cplusplus
}
#endif

#endif
