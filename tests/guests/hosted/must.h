/* Checks of the guests: the first that fails ends the program with its name, the line and errno. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("%s: line %d: %s (%s)\n", program_invocation_short_name, __LINE__, #condition,  \
                   strerror(errno));                                                               \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)
#define FAILS(call, error) MUST((call) < 0 && errno == (error))
