/* Regions with rates of their own, each with a truth of its own: the first region has the tag 1.
 * `rates EVENTS` prints a line for each region and event: kind, count, half width. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <tally_region.h>
#include "works.h"

enum { VISITS = 120, EVENTS = 32 };

static void print(const char *region, char *const *events, int n)
{
    static const char *const kinds[] = { "", "exact", "estimated", "not_measured" };
    struct tally_region found;
    struct tally_reading readings[EVENTS];
    if (tally_region_read(region, 0, &found, readings, EVENTS) != n)
        printf("FAILED to read %s\n", region);
    for (int i = 0; i < n; i++) {
        const struct tally_reading *reading = &readings[i];
        double half = reading->kind == TALLY_ESTIMATED ? reading->half_width_95 : 0;
        printf("%s %s %s %" PRIu64 " %.0f\n", region, events[i], kinds[reading->kind],
               reading->count, half);
    }
}

int main(int argc, char **argv)
{
    char list[1024] = "", why[256], *events[EVENTS];
    int n = 0;
    snprintf(list, sizeof list, "%s", argc == 2 ? argv[1] : "");
    if (tally_regions_open(list, why, sizeof why) != 0)
        return printf("FAILED %s\n", why), 1;
    for (char *event = strtok(list, ","); event && n < EVENTS; event = strtok(NULL, ","))
        events[n++] = event;
    for (uint32_t i = 0; i < NUMBERS; i++)
        numbers[i] = draw() % NUMBERS;
    for (uint32_t visit = 0; visit < 3 * VISITS; visit++) {
        uint32_t kind = draw() % 3, steps = 2000 + draw() % 12000;
        TALLY_REGION(works[kind].name) {
            mark(1, kind + 1);
            works[kind].work(steps);
            mark(2, kind + 1);
        }
    }
    for (uint32_t kind = 0; kind < 3; kind++)
        print(works[kind].name, events, n);
    return 0;
}
