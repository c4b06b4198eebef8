/* Phases of the program by its bottlenecks (docs/guide/phases.md): what it loses its time to now,
 * and what is predicted to come. */
#ifndef TALLY_PHASE_H
#define TALLY_PHASE_H

#include "tally.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a program loses its time to. */
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

/* How phases are tracked. */
struct tally_phase_config {
    /* Instructions of an interval, at least. */
    uint64_t interval_instructions;
    /* Width of the classes, in cycles per 1,000 instructions. */
    uint64_t unit;
    /* 0: costs in units, hashed; 1: the nearest of some means. */
    uint64_t classes;
    /* Whose prediction to return: 0 last value, 1 history, 2 Markov, 3 run length, 4 the best. */
    uint64_t predictor;
};
#define TALLY_PHASE_DEFAULT { 5000000, 128, 1, 4 }

/* The last interval that has ended. */
struct tally_phase {
    /* Intervals that have ended; while it is 0, the rest means nothing. */
    uint64_t intervals;
    /* Changes that were found. */
    uint64_t changes;
    /* The phase; 32 if there were more than 32. */
    uint64_t phase;
    /* The phase that is predicted for the next interval. */
    uint64_t predicted;
    /* 1 if the error bars cross no boundary between phases. */
    uint64_t sure;
    /* The largest cost: enum tally_bottleneck. */
    uint64_t bottleneck;
    /* Core cycles and instructions of the interval. */
    uint64_t cycles;
    uint64_t instructions;
};

/* Tracks the program's phases from the next start on, in a session of the program's own whose
 * events are, in part, those of the processor's cost model. If handler is not null, it is called
 * when the program has changed, with the phase and the number of changes; the rules for handlers of
 * thresholds apply to it. Returns 0 or an error: the session is started, none of its events is in
 * the model, or an interval is shorter than a round. */
int64_t tally_track_phases(int64_t session, const struct tally_phase_config *config,
                           tally_handler handler);
/* Writes the last interval. Returns 0 or an error: phases are not tracked. */
int64_t tally_phase(int64_t session, struct tally_phase *phase);

#ifdef __cplusplus
}
#endif

#endif
