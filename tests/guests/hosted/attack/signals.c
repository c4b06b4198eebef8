/* Signal frames that a handler has changed, and handlers and stacks that cannot be used: whatever a
 * frame contains, sigreturn(2) restores no more than ring 3 may have. */
#include "attack.h"
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>

static volatile int handled;
static void (*change)(ucontext_t *);

static void count(int signal)
{
    (void)signal;
    handled++;
}

static void change_context(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)info;
    change(context);
}

static void fault_again(int signal)
{
    volatile char stack_space[2000];
    stack_space[0] = (char)signal;
    handled++;
    write_to_unmapped();
    stack_space[1] = stack_space[0];
}

static void set_handler(int signal, void (*handler)(int), int flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    MUST(sigaction(signal, &action, NULL) == 0);
}

/* Returns from a handler by a frame that `changes` has changed. */
static void sigreturn_after(void (*changes)(ucontext_t *))
{
    struct sigaction action = {.sa_sigaction = change_context, .sa_flags = SA_SIGINFO};
    MUST(sigaction(SIGUSR1, &action, NULL) == 0);
    change = changes;
    raise(SIGUSR1);
}

static void set_kernel_segment(ucontext_t *c)
{
    c->uc_mcontext.gregs[REG_CSGSFS] = 0x0010000000000008;
}

static void set_all_flags(ucontext_t *c)
{
    c->uc_mcontext.gregs[REG_EFL] = (long long)~0x100ul;
}

static void clear_all_flags(ucontext_t *c)
{
    c->uc_mcontext.gregs[REG_EFL] = 0;
}

static void set_trap_flag(ucontext_t *c)
{
    c->uc_mcontext.gregs[REG_EFL] |= 0x100;
}

static void set_kernel_address(ucontext_t *c)
{
    c->uc_mcontext.gregs[REG_RIP] = (long long)KERNEL;
}

static void set_noncanonical_address(ucontext_t *c)
{
    c->uc_mcontext.gregs[REG_RIP] = 0x800000000000;
}

static void set_last_canonical_address(ucontext_t *c)
{
    c->uc_mcontext.gregs[REG_RIP] = 0x7fffffffffff;
}

static void set_kernel_stack(ucontext_t *c)
{
    c->uc_mcontext.gregs[REG_RSP] = (long long)KERNEL + 0x1000;
}

static void set_invalid_fpu_state(ucontext_t *c)
{
    memset(c->uc_mcontext.fpregs, 0xff, 512);
}

static void set_kernel_fpu_pointer(ucontext_t *c)
{
    c->uc_mcontext.fpregs = (void *)KERNEL;
}

static void remove_fpu_state(ucontext_t *c)
{
    c->uc_mcontext.fpregs = NULL;
}

static void block_all_signals(ucontext_t *c)
{
    memset(&c->uc_sigmask, 0xff, 8);
}

/* Checks that the code runs in ring 3 with interrupts on and without access to ports. */
static void check_privilege(void)
{
    unsigned long flags, code;
    __asm__ volatile("pushfq\n pop %0\n mov %%cs, %1" : "=r"(flags), "=r"(code));
    MUST((flags & 0x3200) == 0x200 && (code & 3) == 3);
}

static void sigreturn_to_kernel_segment(void)
{
    sigreturn_after(set_kernel_segment);
    check_privilege();
}

static void sigreturn_with_all_flags(void)
{
    sigreturn_after(set_all_flags);
    check_privilege();
    __asm__ volatile("cli");
}

static void sigreturn_without_interrupt_flag(void)
{
    sigreturn_after(clear_all_flags);
    check_privilege();
}

static void sigreturn_with_trap_flag(void) { sigreturn_after(set_trap_flag); }
static void sigreturn_to_kernel_address(void) { sigreturn_after(set_kernel_address); }
static void sigreturn_to_noncanonical_address(void) { sigreturn_after(set_noncanonical_address); }

static void sigreturn_to_last_canonical_address(void)
{
    sigreturn_after(set_last_canonical_address);
}


static void sigreturn_with_kernel_stack(void) { sigreturn_after(set_kernel_stack); }
static void sigreturn_with_invalid_fpu_state(void) { sigreturn_after(set_invalid_fpu_state); }
static void sigreturn_with_kernel_fpu_pointer(void) { sigreturn_after(set_kernel_fpu_pointer); }

static void sigreturn_without_fpu_state(void)
{
    sigreturn_after(remove_fpu_state);
    MUST(1.5 * handled == 0);
}

static void sigreturn_with_sigkill_blocked(void)
{
    sigreturn_after(block_all_signals);
    raise(SIGKILL);
}

static void sigreturn_on_unmapped_stack(void)
{
    __asm__ volatile("mov $16, %%rsp\n mov $15, %%eax\n syscall" ::: "memory");
}

static void sigreturn_on_kernel_stack(void)
{
    __asm__ volatile("mov %0, %%rsp\n mov $15, %%eax\n syscall" ::"r"(KERNEL) : "memory");
}

static void fault_in_fault_handler(void)
{
    set_handler(SIGSEGV, fault_again, 0);
    fault_again(0);
}

static void fault_handler_recursion(void)
{
    set_handler(SIGSEGV, fault_again, SA_NODEFER);
    fault_again(0);
}

static void handler_at_kernel_address(void)
{
    set_handler(SIGUSR1, (void (*)(int))KERNEL, 0);
    raise(SIGUSR1);
}

static void sigaltstack_at_kernel_address(void)
{
    stack_t stack = {.ss_sp = (void *)KERNEL, .ss_size = 65536};
    MUST(sigaltstack(&stack, NULL) == 0);
    set_handler(SIGUSR1, count, SA_ONSTACK);
    raise(SIGUSR1);
}

static void handler_without_restorer(void)
{
    uint64_t action[4] = {(uint64_t)count, 0, 0, 0};
    MUST(syscall(SYS_rt_sigaction, SIGUSR1, action, NULL, 8) == 0);
    raise(SIGUSR1);
}

static void fault_with_signals_blocked(void)
{
    sigset_t all;
    sigfillset(&all);
    set_handler(SIGSEGV, count, 0);
    MUST(sigprocmask(SIG_SETMASK, &all, NULL) == 0);
    write_to_unmapped();
}

static void timer_and_raise_storm(void)
{
    struct itimerval often = {{0, 1}, {0, 1}};
    set_handler(SIGALRM, count, 0);
    MUST(setitimer(ITIMER_REAL, &often, NULL) == 0);
    while (handled < 10)
        ;
    for (int i = 0; i < 5000; i++)
        raise(SIGALRM);
    MUST(handled >= 5010);
}

static void sigalrm_default_action(void)
{
    struct itimerval soon = {{0, 0}, {0, 20000}};
    setitimer(ITIMER_REAL, &soon, NULL);
    for (;;)
        pause();
}

/* Blocked signals with values, until no more are taken; the kernel's own signals still are. */
static void queue_signals_until_refused(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGRTMIN);
    sigaddset(&set, SIGUSR1);
    MUST(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
    int sent = 0;
    while (sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = sent}) == 0)
        MUST(++sent <= 100000);
    MUST(errno == EAGAIN && sent > 0);
    MUST(raise(SIGUSR1) == 0 && kill(getpid(), SIGUSR1) == 0);
    siginfo_t info;
    for (int taken = 0; taken < sent; taken++) {
        sigdelset(&set, SIGUSR1);
        MUST(sigwaitinfo(&set, &info) == SIGRTMIN && info.si_value.sival_int == taken);
    }
    MUST(sigqueue(getpid(), SIGRTMIN, (union sigval){0}) == 0);
}

/* Timers until no more are made, each as often as can be. */
static void set_timers_until_refused(void)
{
    struct itimerspec often = {{0, 1}, {0, 1}};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN};
    timer_t timer;
    int made = 0;
    set_handler(SIGRTMIN, count, 0);
    while (timer_create(CLOCK_MONOTONIC, &event, &timer) == 0) {
        MUST(timer_settime(timer, 0, &often, NULL) == 0);
        MUST(++made <= 10000);
    }
    MUST(errno == EAGAIN && made > 0);
    while (handled < 200)
        ;
}

/* Descriptors of signals until no more are opened, with one signal for all of them. */
static void open_signal_files_until_refused(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    MUST(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
    int first = signalfd(-1, &set, SFD_NONBLOCK), last = first, fd;
    while ((fd = signalfd(-1, &set, SFD_NONBLOCK)) >= 0)
        last = fd;
    MUST(errno == EMFILE && first >= 0 && raise(SIGUSR1) == 0);
    struct signalfd_siginfo info[2];
    MUST(read(last, info, sizeof info) == sizeof info[0]);
    MUST(read(first, info, sizeof info) < 0 && errno == EAGAIN);
}

/* No thread is woken by a signal that is ignored, though a descriptor is for it. */
static void deadlock_beside_ignored_timer(void)
{
    struct itimerspec often = {{0, 1000000}, {0, 1000000}};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGURG};
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGURG);
    timer_t timer;
    int ends[2];
    char byte;
    MUST(signalfd(-1, &set, 0) >= 0 && pipe(ends) == 0);
    MUST(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
    MUST(timer_settime(timer, 0, &often, NULL) == 0);
    MUST(read(ends[0], &byte, 1) != 1);
}

static void sigkill_to_itself(void) { kill(getpid(), SIGKILL); }

const struct attack signal_attacks[] = {
    ATTACK(sigreturn_to_kernel_segment),
    ATTACK(sigreturn_with_all_flags),
    ATTACK(sigreturn_without_interrupt_flag),
    ATTACK(sigreturn_with_trap_flag),
    ATTACK(sigreturn_to_kernel_address),
    ATTACK(sigreturn_to_noncanonical_address),
    ATTACK(sigreturn_to_last_canonical_address),
    ATTACK(sigreturn_with_kernel_stack),
    ATTACK(sigreturn_with_invalid_fpu_state),
    ATTACK(sigreturn_with_kernel_fpu_pointer),
    ATTACK(sigreturn_without_fpu_state),
    ATTACK(sigreturn_with_sigkill_blocked),
    ATTACK(sigreturn_on_unmapped_stack),
    ATTACK(sigreturn_on_kernel_stack),
    ATTACK(fault_in_fault_handler),
    ATTACK(fault_handler_recursion),
    ATTACK(handler_at_kernel_address),
    ATTACK(sigaltstack_at_kernel_address),
    ATTACK(handler_without_restorer),
    ATTACK(fault_with_signals_blocked),
    ATTACK(timer_and_raise_storm),
    ATTACK(queue_signals_until_refused),
    ATTACK(set_timers_until_refused),
    ATTACK(open_signal_files_until_refused),
    ATTACK(deadlock_beside_ignored_timer),
    ATTACK(sigalrm_default_action),
    ATTACK(sigkill_to_itself),
    {0},
};
