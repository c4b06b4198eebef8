/* Counts whole CPUs from C: their banks, thresholds with a handler, and instances, while children
 * of its own run. `cpus EVENTS CPUS`, instructions first; `cpus child` spins. */
#include "say.h"

_Static_assert(sizeof(struct tally_instance) == 72, "nine words");

enum { MOST_CPUS = 4, MOST_EVENTS = 8, CHILDREN = 2 };
#define ITERATIONS 10000000ull
/* Of the thresholds, in instructions. */
#define AT 5000000ull
/* Instructions of the longest block of QEMU's translator: a threshold fires at its end. */
#define BLOCK 512

static void spin(void)
{
    for (volatile uint64_t i = 0; i < ITERATIONS; i++)
        continue;
}

/* The upcalls, and the least of their counts. */
static volatile uint64_t calls, least = UINT64_MAX;

static void note(size_t event, uint64_t count)
{
    if (event == 0 && count < least)
        least = count;
    calls++;
}

/* Runs the children to their end. */
static int run_children(void)
{
    char detail[256];
    int64_t children[CHILDREN];
    for (int i = 0; i < CHILDREN; i++) {
        children[i] = tally_program_load("cpus\0child", sizeof "cpus\0child", detail, sizeof detail);
        if (children[i] < 0 || tally_program_run(children[i]) != 0)
            return 0;
    }
    for (int i = 0; i < CHILDREN; i++)
        if (tally_program_wait(children[i]) != 0)
            return 0;
    return 1;
}

/* The last values of each CPU: the bank's, its thresholds' and the kernel's. */
static int judge(int64_t session, const uint64_t **banks, int64_t cpus)
{
    struct tally_instance instance;
    struct tally_reading readings[MOST_EVENTS];
    uint64_t reached = 0, all = 0;
    for (int64_t cpu = 0; cpu < cpus; cpu++) {
        if (tally_instance(session, (size_t)cpu, &instance, readings, MOST_EVENTS) != cpus)
            return fail("the number of instances");
        if (instance.number != (uint64_t)cpu || readings[0].kind != TALLY_EXACT)
            return fail("an instance is not that of a CPU");
        if (tally_counter(banks[cpu], 0) != readings[0].count)
            return fail("a bank's instructions are not the CPU's");
        uint64_t shown = tally_counter(banks[cpu], 1);
        double off = (double)shown - (double)readings[1].count;
        if (readings[1].kind == TALLY_ESTIMATED &&
            !((off < 0 ? -off : off) <= tally_counter_error(banks[cpu], 1) + 1))
            return fail("a bank's estimate is not the CPU's");
        uint64_t fires = readings[0].count >= AT;
        if (tally_counter_fired(banks[cpu], 0) != fires)
            return fail("a CPU's threshold");
        reached += fires;
        all += readings[0].count;
    }
    if (reached == 0 || calls != reached || least < AT || least >= AT + BLOCK)
        return fail("the handler is not called for each threshold at its count");
    /* An iteration takes three instructions or more. */
    return all < 3 * CHILDREN * ITERATIONS ? fail("the children are not counted") : 0;
}

int main(int argc, char **argv)
{
    char detail[256];
    const uint64_t *banks[MOST_CPUS];
    struct tally_reading reading;
    struct tally_stats stats;

    if (argc == 2) {
        spin();
        return 0;
    }
    int64_t cpus = argc == 3 ? argv[2][0] - '0' : 0;
    if (cpus < 1 || cpus > MOST_CPUS)
        return fail("usage: cpus EVENTS CPUS");
    const uint64_t behind[TALLY_CPU_SET_WORDS] = { 1ull << cpus };
    if (tally_open_cpus(behind, argv[1], NULL, detail, sizeof detail) >= 0 || !detail[0])
        return fail("a CPU that is not there is not refused with a text");
    struct tally_config config = { TALLY_USER, TALLY_CYCLES, 100000, 1000000, TALLY_PLANNED, 0 };
    int64_t session = tally_open_cpus(NULL, argv[1], &config, detail, sizeof detail);
    if (session < 0)
        return fail(detail);
    if (tally_cpu_threshold(session, 0, 0, AT, note) != TALLY_WRONG_STATE ||
        tally_map_cpu(session, (size_t)cpus) != TALLY_BAD_ARGUMENT)
        return fail("a threshold without a bank, or a bank without a CPU");
    for (int64_t cpu = 0; cpu < cpus; cpu++) {
        int64_t mapped = tally_map_cpu(session, (size_t)cpu);
        if (mapped < 0 || tally_cpu_threshold(session, (size_t)cpu, 0, AT, note) != 0)
            return fail("map, or a threshold");
        banks[cpu] = (const uint64_t *)mapped;
    }
    if (tally_cpu_threshold(session, (size_t)cpus, 0, AT, note) != TALLY_BAD_ARGUMENT ||
        tally_read(session, &reading, 1) != TALLY_WRONG_STATE)
        return fail("what whole CPUs do not have");
    if (tally_bank_start(session, banks[0]) != 0 || tally_start(session) != TALLY_WRONG_STATE)
        return fail("start");
    if (!run_children())
        return fail("a child");
    tally_bank_stop(banks[cpus - 1]);
    if (tally_stats(session, &stats) != 0 || stats.instructions == 0)
        return fail("the statistics of a stopped session");
    int status = judge(session, banks, cpus);
    if (status != 0)
        return status;
    if (tally_close(session) != 0 || tally_start(session) != TALLY_NO_SESSION)
        return fail("close");
    say("cpus: done\n");
    return 0;
}
