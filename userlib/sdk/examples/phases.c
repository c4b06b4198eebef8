/* A program that adapts to its phase: it sums up a table column by column, which misses the caches
 * at each step, until its phase says so; then it goes row by row. On another kernel than Tally it
 * says so and never changes. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <tally.h>
#include <tally_phase.h>

enum { SIDE = 2048, ROUNDS = 12 };

/* Events of the cost model, of Intel's processors and of AMD's. */
static const char *const lists[] = {
    "L2_RQSTS.ALL_CODE_RD,BR_MISP_RETIRED.COND,ARITH.DIVIDER_ACTIVE,MEM_LOAD_RETIRED.L1_MISS,"
    "MEM_LOAD_RETIRED.L2_MISS,MEM_LOAD_RETIRED.L3_MISS,DTLB_LOAD_MISSES.WALK_COMPLETED",
    "INSTRUCTION_CACHE_REFILLS_FROM_L2,RETIRED_BRANCH_MISPREDICTED_DIRECTION_MISMATCH,"
    "DIV_CYCLES_BUSY_COUNT,DEMAND_DATA_CACHE_FILLS_FROM_SYSTEM.LCL_L2,"
    "DEMAND_DATA_CACHE_FILLS_FROM_SYSTEM.LOCAL_CCX,"
    "DEMAND_DATA_CACHE_FILLS_FROM_SYSTEM.DRAM_IO_NEAR,L1_DTLB_MISS.TLB_RELOAD_4K_L2_MISS",
};

static int64_t track(void)
{
    struct tally_phase_config config = TALLY_PHASE_DEFAULT;
    char why[256];
    config.interval_instructions = 2000000;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        int64_t session = tally_open(lists[i], NULL, why, sizeof why);
        if (session < 0)
            continue;
        int64_t error = tally_track_phases(session, &config, NULL);
        if (error < 0)
            printf("phases are not tracked: %s\n", tally_strerror(error));
        tally_start(session);
        return session;
    }
    printf("not counted: %s\n", why);
    return -1;
}

static int is_bound_by_data(int64_t session, struct tally_phase *phase)
{
    if (tally_phase(session, phase) < 0 || phase->intervals == 0)
        return 0;
    return phase->bottleneck == TALLY_L1D_MISSES || phase->bottleneck == TALLY_L2_DATA_MISSES ||
           phase->bottleneck == TALLY_DTLB_MISSES;
}

int main(void)
{
    uint32_t *table = calloc((size_t)SIDE * SIDE, sizeof *table);
    if (!table)
        return 1;
    int64_t session = track();
    struct tally_phase phase = { 0 };
    uint64_t sum = 0;
    int by_rows = 0;
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < SIDE; i++)
            for (size_t j = 0; j < SIDE; j++)
                sum += table[by_rows ? i * SIDE + j : j * SIDE + i];
        if (!by_rows && is_bound_by_data(session, &phase)) {
            by_rows = 1;
            printf("round %d: bound by data, %.1f cycles an instruction: by rows from here on\n",
                   round, (double)phase.cycles / (double)phase.instructions);
        }
    }
    if (by_rows && tally_phase(session, &phase) == 0)
        printf("at the end %.1f cycles an instruction, %" PRIu64 " changes\n",
               (double)phase.cycles / (double)phase.instructions, phase.changes);
    tally_close(session);
    free(table);
    return sum != 0;
}
