/* A library that `opens` is linked with, found beside the program ($ORIGIN). */
#include "needed.h"

static __thread int calls;

int needed_calls(void)
{
    return ++calls;
}
