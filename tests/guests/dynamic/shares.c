/* Executes one loop: a sixth of the times in the program, a third in its library, and half in the
 * library that its argument names. */
#include <dlfcn.h>
#include <stdio.h>

#include "loop.h"

#define TIMES 1000000L

int main(int count, char **words)
{
    long (*in_loaded_library)(long);
    if (count < 2)
        return 1;
    void *library = dlopen(words[1], RTLD_NOW);
    if (library == NULL)
        return 2;
    *(void **)&in_loaded_library = dlsym(library, "in_loaded");
    if (in_loaded_library == NULL)
        return 3;
    long sum = in_program(TIMES) + in_library(2 * TIMES);
    sum += in_loaded_library(3 * TIMES);
    printf("%ld\n", sum);
    return 0;
}
