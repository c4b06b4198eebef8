/* Ends by a signal: `endings NUMBER` raises it, `endings full` fills the alternative stack with
 * handlers, `endings nowhere` has a handler at a non-canonical address. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "must.h"

/* An alternative stack that handlers fill, and the memory below it. */
static struct {
    char guard[8192], stack[16384];
} small;
static long own_pid;

static void recurse(int signal)
{
    for (unsigned i = 0; i < sizeof small.guard; i++)
        if (small.guard[i] != 0) {
            puts("endings: below the stack");
            _exit(1);
        }
    long result = SYS_kill;
    __asm__ volatile("syscall"
                     : "+a"(result)
                     : "D"(own_pid), "S"((long)signal)
                     : "rcx", "r11", "memory");
}

static void fill(void)
{
    stack_t stack = {.ss_sp = small.stack, .ss_size = sizeof small.stack};
    struct sigaction action = {.sa_handler = recurse, .sa_flags = SA_ONSTACK | SA_NODEFER};
    MUST(sigaltstack(&stack, NULL) == 0 && sigaction(SIGUSR1, &action, NULL) == 0);
    own_pid = getpid();
    raise(SIGUSR1);
}

static void set_noncanonical_handler(void)
{
    struct sigaction action = {0};
    action.sa_handler = (void (*)(int))0x8000000000000000;
    MUST(sigaction(SIGUSR1, &action, NULL) == 0);
    raise(SIGUSR1);
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "";
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (strcmp(way, "full") == 0) {
        fill();
        printf("endings: survived\n");
    } else if (strcmp(way, "nowhere") == 0) {
        set_noncanonical_handler();
        printf("endings: survived\n");
    } else {
        printf("endings: raises %s\n", way);
        raise(atoi(way));
        printf("endings: goes on\n");
    }
    return 0;
}
