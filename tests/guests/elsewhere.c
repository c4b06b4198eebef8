/* Calls every function of tally.h on a kernel that is not Tally: each says so, and the program goes
 * on. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <tally_breakdown.h>
#include <tally_part.h>
#include <tally_phase.h>
#include <tally_region.h>

static int failed;

#define REFUSED(call)                                                                              \
    do {                                                                                           \
        if ((call) != TALLY_NOT_TALLY) {                                                           \
            printf("FAILED %s\n", #call);                                                          \
            failed = 1;                                                                            \
        }                                                                                          \
    } while (0)

static void handler(size_t event, uint64_t count)
{
    (void)event, (void)count;
}

int main(void)
{
    char why[256] = "?", direct[256] = "?", load[256] = "?", cut[8];
    const char *sentence = tally_strerror(TALLY_NOT_TALLY);
    struct tally_reading readings[1];
    struct tally_stats stats;
    uint64_t addresses[1][2], indices[1];

    REFUSED(tally_open("cycles", NULL, why, sizeof why));
    REFUSED(tally_open("cycles", NULL, cut, sizeof cut));
    REFUSED(tally_open("cycles", NULL, NULL, 0));
    REFUSED(tally_open_on(1, "cycles", NULL, why, sizeof why));
    REFUSED(tally_open_cpus(NULL, "cycles", NULL, why, sizeof why));
    int64_t session = tally_open("cycles", NULL, why, sizeof why);
    REFUSED(tally_start(session));
    REFUSED(tally_stop(session));
    REFUSED(tally_read(session, readings, 1));
    REFUSED(tally_stats(session, &stats));
    REFUSED(tally_unit_counts(session, indices, 1));
    REFUSED(tally_threshold(session, 0, 1, handler));
    struct tally_instance instance;
    REFUSED(tally_instance(session, 0, &instance, readings, 1));
    REFUSED(tally_map_cpu(session, 0));
    REFUSED(tally_cpu_threshold(session, 0, 0, 1, handler));
    REFUSED(tally_sample(session, 0, 1000));
    REFUSED(tally_sample_with_stack(session, 0, 1000, 4096));
    REFUSED(tally_samples(session, addresses, 1));
    REFUSED(tally_thread(session, indices, 1));
    REFUSED(tally_direct_open("cycles", TALLY_USER, indices, direct, sizeof direct));
    REFUSED(tally_direct_close());
    REFUSED(tally_program_load("x", 2, load, sizeof load));
    REFUSED(tally_program_run(1));
    REFUSED(tally_program_wait(1));
    struct tally_region region;
    REFUSED(tally_regions_open(NULL, why, sizeof why));
    REFUSED(tally_region_start("x"));
    REFUSED(tally_region_stop("x"));
    TALLY_REGION("x") region.calls = 1;
    REFUSED(tally_region_read("x", 0, &region, readings, 1));
    REFUSED(tally_regions_print(2));
    REFUSED(tally_regions_close());
    struct tally_cycle_part parts[1];
    char breakdown[256] = "?", together[64];
    REFUSED(tally_breakdown_open(NULL, breakdown, sizeof breakdown));
    REFUSED(tally_breakdown_read(1, parts, 1));
    REFUSED(tally_breakdown_together(1, together, sizeof together));
    REFUSED(tally_breakdown_close(1));
    struct tally_phase_config phases = TALLY_PHASE_DEFAULT;
    struct tally_phase phase;
    REFUSED(tally_track_phases(session, &phases, handler));
    REFUSED(tally_phase(session, &phase));
    REFUSED(tally_part(session));
    REFUSED(tally_part_reset(1));
    REFUSED(tally_part_accumulate(1));
    REFUSED(tally_part_skip(1));
    REFUSED(tally_part_read(1, readings, 1));
    REFUSED(tally_part_close(1));
    REFUSED(tally_opened_session(session));
    REFUSED(tally_opened_events(session));
    const uint64_t *bank = (const uint64_t *)tally_map(session);
    REFUSED((int64_t)bank);
    REFUSED(tally_bank_start(session, bank));
    tally_bank_stop(bank);
    if (tally_counter(bank, 0) != 0 || !isnan(tally_counter_error(bank, 0)))
        printf("FAILED a counter without a bank\n"), failed = 1;
    REFUSED(tally_close(session));
    if (strcmp(why, sentence) || strcmp(direct, sentence) || strcmp(load, sentence) ||
        strcmp(breakdown, sentence) || strncmp(cut, sentence, 7) || cut[7])
        printf("FAILED a message is missing\n"), failed = 1;
    tally_write(1, "elsewhere: ", 11);
    tally_write(1, sentence, strlen(sentence));
    tally_write(1, "\n", 1);
    return failed;
}
