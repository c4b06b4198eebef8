/* Checks tally.h against the library: opens, counts, reads and closes a session from C, and checks
 * the size of every structure. `capi EVENTS`, instructions first. */
#include "say.h"

_Static_assert(sizeof(struct tally_config) == 48, "six words");
_Static_assert(sizeof(struct tally_reading) == 64, "eight words");
_Static_assert(sizeof(struct tally_stats) == 136, "seventeen words");
_Static_assert(offsetof(struct tally_reading, total_cycles) == 40, "the sixth word");

/* The count and the event of the last upcall. */
static volatile uint64_t fired_count;
static volatile size_t fired_event = 99;

static void note(size_t event, uint64_t count)
{
    fired_event = event;
    fired_count = count;
}

int main(int argc, char **argv)
{
    char detail[256];
    struct tally_config config = { TALLY_USER, TALLY_CYCLES, 100, 20000, TALLY_ADAPTIVE, 0 };
    struct tally_reading readings[2];
    struct tally_stats stats;
    volatile uint64_t sum = 0;

    if (argc != 2)
        return fail("usage: capi EVENTS");
    if (tally_open(argv[1], &config, detail, sizeof detail) != TALLY_SLICE_OUT_OF_RANGE ||
        !detail[0])
        return fail("a slice of 100 cycles is not refused with a text");
    config.slice_length = 50000;
    int64_t session = tally_open(argv[1], &config, detail, sizeof detail);
    if (session < 0)
        return fail(detail);
    if (tally_read(session, readings, 2) != 2 || readings[0].kind != TALLY_NOT_MEASURED ||
        readings[0].count != TALLY_NOT_STARTED)
        return fail("before the start a reading is not 'not measured' with its reason");
    int64_t mapped = tally_map(session);
    if (mapped < 0)
        return fail("map");
    const uint64_t *bank = (const uint64_t *)mapped;
    if (tally_bank_start(session, bank) != 0 || tally_start(session) != TALLY_WRONG_STATE)
        return fail("start");
    uint64_t before = tally_counter(bank, 0);
    if (tally_counter(bank, 0) <= before || tally_counter_error(bank, 0) != 0)
        return fail("a counter does not grow, or has an error");
    for (uint64_t i = 0; i < 100000; i++)
        sum += i;
    tally_bank_stop(bank);
    before = tally_counter(bank, 0);
    for (uint64_t i = 0; i < 100000; i++)
        sum += i;
    if (tally_counter(bank, 0) != before || tally_bank_start(session, bank) != 0)
        return fail("a stopped counter grows");
    for (uint64_t i = 0; i < 100; i++) {
        tally_bank_stop(bank);
        sum += i;
        if (tally_bank_start(session, bank) != 0 || tally_counter(bank, 0) <= before)
            return fail("a counter does not grow after a restart");
    }
    uint64_t at = tally_counter(bank, 1) + 5000;
    if (tally_threshold(session, 1, at, note) != 0 || tally_threshold(session, 2, at, note) >= 0)
        return fail("threshold");
    for (uint64_t i = 0; i < 100000; i++)
        sum += i;
    if (fired_event != 1 || fired_count < at || fired_count > at + 60)
        return fail("a handler does not run at its threshold");
    fired_event = 99;
    if (tally_threshold(session, 1, tally_counter(bank, 1) + 5000, note) != 0 ||
        tally_threshold(session, 1, TALLY_NO_THRESHOLD, NULL) != 0)
        return fail("clear a threshold");
    for (uint64_t i = 0; i < 100000; i++)
        sum += i;
    if (fired_event != 99)
        return fail("a cleared threshold fires");
    struct tally_preload reset = tally_counter_preload(bank, 0, 0);
    struct tally_preload below = tally_counter_preload(bank, 0, (uint64_t)-5000);
    at = tally_preloaded_count(&below, 0);
    if (tally_threshold(session, 0, at, note) != 0)
        return fail("a preloaded counter's threshold");
    for (uint64_t i = 0; i < 100000; i++)
        sum += i;
    if (tally_preloaded(bank, 0, &reset) < 300000 || tally_preloaded(bank, 0, &below) > 1000000 ||
        tally_preloaded_error(bank, 0, &reset) != 0)
        return fail("a preloaded counter");
    if (fired_event != 0 || fired_count < at || fired_count > at + 60)
        return fail("a preloaded counter's threshold does not fire");
    if (tally_stop(session) != 0)
        return fail("stop");
    if (tally_preloaded(bank, 1, &(struct tally_preload){ 7 - tally_counter(bank, 1), 0 }) != 7)
        return fail("a preloaded counter that stands still");
    if (tally_read(session, readings, 2) != 2)
        return fail("a read gives not two events");
    if (readings[0].kind != TALLY_EXACT || readings[0].count < 400000)
        return fail("instructions are not exact");
    uint64_t branches = tally_counter(bank, 1), reading = readings[1].count;
    if (tally_counter(bank, 0) != readings[0].count || branches + 1 < reading ||
        (double)branches - (double)reading > tally_counter_error(bank, 1) + 1)
        return fail("the bank differs from the readings");
    if (tally_stats(session, &stats) != 0 || stats.instructions != readings[0].count)
        return fail("the statistics differ from the readings");
    if (tally_close(session) != 0)
        return fail("close");
    if (tally_start(session) != TALLY_NO_SESSION || !tally_strerror(TALLY_NO_SESSION)[0])
        return fail("a closed session is not refused");
    say("capi: done\n");
    return 0;
}
