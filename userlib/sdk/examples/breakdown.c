/* A program that asks itself where its cycles go: it follows a chain of pointers, and then divides.
 * On another kernel than Tally it says so. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <tally_breakdown.h>

enum { LINKS = 1 << 19, STEPS = 1 << 21 };

static void print(const char *work, int64_t session)
{
    struct tally_cycle_part parts[TALLY_MOST_CYCLE_PARTS];
    int64_t n = tally_breakdown_read(session, parts, TALLY_MOST_CYCLE_PARTS);
    if (n <= 0) {
        printf("%s: %s\n", work, n < 0 ? tally_strerror(n) : "too few slices for an estimate");
        return;
    }
    /* The first part is what is not lost. A part that has parts of its own is told by these. */
    const struct tally_cycle_part *most = &parts[1];
    for (int64_t i = 1; i < n; i++) {
        int has_parts = i + 1 < n && parts[i + 1].level > parts[i].level;
        if (!has_parts && (most == &parts[1] || parts[i].cycles > most->cycles))
            most = &parts[i];
    }
    printf("%s: %.0f %% of the cycles so far are lost to: %s\n", work, 100 * most->share,
           most->name);
}

int main(void)
{
    char why[512];
    int64_t session = tally_breakdown_open(NULL, why, sizeof why);
    uint32_t *next = malloc(LINKS * sizeof *next), at = 0;
    if (!next)
        return 1;
    if (session < 0)
        printf("not counted: %s\n", why);
    for (uint32_t i = 0; i < LINKS; i++)
        next[i] = (i * 1664525u + 1013904223u) % LINKS;
    if (session >= 0)
        tally_start(session);
    for (int i = 0; i < STEPS; i++)
        at = next[at];
    print("chain", session);
    uint64_t value = at | 1;
    for (uint64_t i = 0; i < 4 * STEPS; i++)
        value = (value | 1ull << 63) / (value % 5 + i + 3);
    print("divisions", session);
    if (session >= 0)
        tally_breakdown_close(session);
    printf("result %" PRIu64 "\n", value);
    free(next);
    return 0;
}
