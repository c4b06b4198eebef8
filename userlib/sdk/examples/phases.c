/* A program that adapts to its phase. It sums up tables of numbers whose order in memory it is not
 * told: by rows, or by columns. In the wrong order of loops each step misses the caches. When its
 * phase says that it is bound by data, it tries the other order, and keeps the faster one.
 *
 * `example-phases rows`, `columns` and `oracle` do the same work with a fixed order, and with the
 * right one. On another kernel than Tally it says so and never changes. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tally.h>
#include <tally_phase.h>

enum { SIDE = 1024, PASSES = 48, STRETCH = 12 };

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
    config.interval_instructions = 1000000;
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

/* Sums up a table in one order of loops. */
static uint64_t sum(const uint32_t *table, size_t row, size_t column, int by_rows)
{
    size_t outer = by_rows ? row : column, inner = by_rows ? column : row;
    uint64_t sum = 0;
    for (size_t i = 0; i < SIDE; i++)
        for (size_t j = 0; j < SIDE; j++)
            sum += table[i * outer + j * inner];
    return sum;
}

/* Cycles an instruction, of the program's orders. */
struct speed {
    double kept;     /* in the order that was kept */
    double before;   /* before the order that is tried, while one is */
    int changes;
};

/* Returns whether the next pass takes the other order. */
static int changes_order(int64_t session, struct speed *speed)
{
    struct tally_phase phase;
    if (tally_phase(session, &phase) < 0 || phase.intervals == 0)
        return 0;
    double now = (double)phase.cycles / (double)phase.instructions;
    int is_bound = phase.bottleneck == TALLY_L1D_MISSES ||
                   phase.bottleneck == TALLY_L2_DATA_MISSES ||
                   phase.bottleneck == TALLY_DTLB_MISSES;
    int was_tried = speed->before > 0, is_worse = now > speed->before;
    int tries = !was_tried && is_bound && (speed->kept == 0 || now > 1.25 * speed->kept);
    if (!tries)
        speed->kept = was_tried && is_worse ? speed->before : now;
    speed->before = tries ? now : 0;
    speed->changes += tries || (was_tried && is_worse);
    return tries || (was_tried && is_worse);
}

int main(int argc, char **argv)
{
    const char *order = argc > 1 ? argv[1] : "adaptive";
    int adapts = strcmp(order, "adaptive") == 0, knows = strcmp(order, "oracle") == 0;
    uint32_t *table = calloc((size_t)SIDE * SIDE, sizeof *table);
    if (!table)
        return 1;
    for (size_t i = 0; i < (size_t)SIDE * SIDE; i++)
        table[i] = i % 7;
    int64_t session = adapts ? track() : -1;
    struct speed speed = { 0 };
    uint64_t total = 0;
    int by_rows = strcmp(order, "columns") != 0;
    for (int pass = 0; pass < PASSES; pass++) {
        int is_by_rows = pass / STRETCH % 2 == 0;
        if (knows)
            by_rows = is_by_rows;
        total += sum(table, is_by_rows ? SIDE : 1, is_by_rows ? 1 : SIDE, by_rows);
        if (adapts && changes_order(session, &speed))
            by_rows = !by_rows;
    }
    printf("%s: sum %" PRIu64 ", %d changes of the order\n", order, total, speed.changes);
    tally_close(session);
    free(table);
    return 0;
}
