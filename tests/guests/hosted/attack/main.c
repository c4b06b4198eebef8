/* Attacks the kernel: `attack NAME [INSTANCE]`. An attack that the kernel answers with a fault or a
 * signal ends with that status; one that the kernel refuses ends with 0 if every refusal was as
 * expected, else with 1. tests/boot/attacks.rs has the list with the status of each. */
#include "attack.h"

#include "tally.h"

int instance;

void write_to_unmapped(void)
{
    /* Volatile, so that the compiler does not see the address. */
    static char *volatile address = UNMAPPED;
    *(volatile char *)address = 1;
}

long open_session(const char *events, long program)
{
    uint64_t config[6] = {0, 0, 20000, 1000000, 0, 0};
    return tally_opened_session(
        syscall(SESSION_OPEN, events, strlen(events), config, NULL, 0, program));
}

int main(int argc, char **argv)
{
    static const struct attack *const families[] = {
        signal_attacks, thread_attacks, memory_attacks, file_attacks, session_attacks,
        stream_attacks,
    };
    instance = argc > 2 ? atoi(argv[2]) : 0;
    for (size_t i = 0; argc > 1 && i < sizeof families / sizeof *families; i++)
        for (const struct attack *attack = families[i]; attack->name; attack++)
            if (strcmp(argv[1], attack->name) == 0) {
                attack->run();
                exit(0);
            }
    return 2;
}
