/* Attacks the kernel in the way that its argument names; the test knows with which status each ends. Those
 * that are refused, not stopped, end with 0 if all was refused that had to be.
 *
 * Long because there are many: each is a few lines, and the table is at the end. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("attack: line %d: %s (%s)\n", __LINE__, #condition, strerror(errno));           \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* Tally's calls and errors, as kernel/abi has them. */
enum { OPEN = 0x7a110000, START, STOP, READ, STATS, CLOSE, MAP, THRESHOLD };
enum { LOAD = 0x7a110020, RUN, AWAIT };
enum { NO_SESSION = 2009, BUSY = 2011, NO_MEMORY = 2012, TOO_MANY_SESSIONS = 2017, TOO_MANY_PROGRAMS = 2018 };
#define KERNEL 0xffff800000000000ul
#define NOWHERE ((void *)0x10)
#define FAULT (*(volatile char *)nowhere = 1)

static char *volatile nowhere = NOWHERE;
/* Which of several programs it is, where that matters. */
static int which;

static char *list = "instructions,branches";
static char many[16 * 1024];

static long refused(long result)
{
    return result < 0 ? errno : 0;
}

static long open_on(const char *events, long program)
{
    uint64_t config[5] = {0, 0, 20000, 1000000, 0};
    long opened = syscall(OPEN, events, strlen(events), config, NULL, 0, program);
    /* The upper half has the number of events. */
    return opened < 0 ? opened : opened & 0xffffffff;
}

static long load(const char *words, size_t bytes)
{
    return syscall(LOAD, words, bytes, NULL, 0);
}

/* 1,024 events. */
static const char *all_events(void)
{
    char *end = many;
    for (unsigned i = 0; i < 1024; i++)
        end += sprintf(end, "%sr%07x", i ? "," : "", (1 + i % 200) << 24 | (1 + i / 200) << 8 | 0xc4);
    return many;
}

/* Signals. */

static volatile int signals;
static void (*change)(ucontext_t *);

static void count(int signal)
{
    (void)signal;
    signals++;
}

static void changes(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)info;
    change(context);
}

static void again(int signal)
{
    volatile char room[2000];
    room[0] = (char)signal;
    signals++;
    FAULT;
    room[1] = room[0];
}

static void handle(int signal, void (*handler)(int), int flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    MUST(sigaction(signal, &action, NULL) == 0);
}

static void return_with(void (*what)(ucontext_t *))
{
    struct sigaction action = {.sa_sigaction = changes, .sa_flags = SA_SIGINFO};
    MUST(sigaction(SIGUSR1, &action, NULL) == 0);
    change = what;
    raise(SIGUSR1);
}

static void kernel_code(ucontext_t *c)
{
    c->uc_mcontext.gregs[REG_CSGSFS] = 0x0010000000000008;
}

static void all_flags(ucontext_t *c)
{
    c->uc_mcontext.gregs[REG_EFL] = (long long)~0x100ul;
}

static void no_interrupts(ucontext_t *c)
{
    c->uc_mcontext.gregs[REG_EFL] = 0;
}

static void step(ucontext_t *c)
{
    c->uc_mcontext.gregs[REG_EFL] |= 0x100;
}

static void to_kernel(ucontext_t *c)
{
    c->uc_mcontext.gregs[REG_RIP] = (long long)KERNEL;
}

static void to_hole(ucontext_t *c)
{
    c->uc_mcontext.gregs[REG_RIP] = 0x800000000000;
}

static void to_edge(ucontext_t *c)
{
    c->uc_mcontext.gregs[REG_RIP] = 0x7fffffffffff;
}

static void kernel_stack(ucontext_t *c)
{
    c->uc_mcontext.gregs[REG_RSP] = (long long)KERNEL + 0x1000;
}

static void wild_fpu(ucontext_t *c)
{
    memset(c->uc_mcontext.fpregs, 0xff, 512);
}

static void fpu_nowhere(ucontext_t *c)
{
    c->uc_mcontext.fpregs = (void *)KERNEL;
}

static void no_fpu(ucontext_t *c)
{
    c->uc_mcontext.fpregs = NULL;
}

static void all_masks(ucontext_t *c)
{
    memset(&c->uc_sigmask, 0xff, 8);
}

/* Ring 3, interrupts on, no privilege over ports. */
static void look(void)
{
    unsigned long flags, code;
    __asm__ volatile("pushfq\n pop %0\n mov %%cs, %1" : "=r"(flags), "=r"(code));
    MUST((flags & 0x3200) == 0x200 && (code & 3) == 3);
}

static void forge_code(void) { return_with(kernel_code); look(); }
static void forge_flags(void) { return_with(all_flags); look(); __asm__ volatile("cli"); }
static void forge_no_interrupts(void) { return_with(no_interrupts); look(); }
static void forge_step(void) { return_with(step); }
static void forge_to_kernel(void) { return_with(to_kernel); }
static void forge_to_hole(void) { return_with(to_hole); }
static void forge_to_edge(void) { return_with(to_edge); }
static void forge_stack(void) { return_with(kernel_stack); }
static void forge_fpu(void) { return_with(wild_fpu); }
static void forge_fpu_nowhere(void) { return_with(fpu_nowhere); }
static void forge_no_fpu(void) { return_with(no_fpu); MUST(1.5 * signals == 0); }
static void forge_masks(void) { return_with(all_masks); raise(SIGKILL); }

static void no_frame(void)
{
    __asm__ volatile("mov $16, %%rsp\n mov $15, %%eax\n syscall" ::: "memory");
}

static void kernel_frame(void)
{
    __asm__ volatile("mov %0, %%rsp\n mov $15, %%eax\n syscall" ::"r"(KERNEL) : "memory");
}

static void handler_faults(void) { handle(SIGSEGV, again, 0); again(0); }
static void handler_recurs(void) { handle(SIGSEGV, again, SA_NODEFER); again(0); }
static void handler_in_kernel(void) { handle(SIGUSR1, (void (*)(int))KERNEL, 0); raise(SIGUSR1); }

static void stack_in_kernel(void)
{
    stack_t stack = {.ss_sp = (void *)KERNEL, .ss_size = 65536};
    MUST(sigaltstack(&stack, NULL) == 0);
    handle(SIGUSR1, count, SA_ONSTACK);
    raise(SIGUSR1);
}

static void no_restorer(void)
{
    uint64_t action[4] = {(uint64_t)count, 0, 0, 0};
    MUST(syscall(SYS_rt_sigaction, SIGUSR1, action, NULL, 8) == 0);
    raise(SIGUSR1);
}

static void blocked_fault(void)
{
    sigset_t all;
    sigfillset(&all);
    handle(SIGSEGV, count, 0);
    MUST(sigprocmask(SIG_SETMASK, &all, NULL) == 0);
    FAULT;
}

static void storm(void)
{
    struct itimerval often = {{0, 1}, {0, 1}};
    handle(SIGALRM, count, 0);
    MUST(setitimer(ITIMER_REAL, &often, NULL) == 0);
    while (signals < 10)
        ;
    for (int i = 0; i < 5000; i++)
        raise(SIGALRM);
    MUST(signals >= 5010);
}

static void times_out(void) { struct itimerval soon = {{0, 0}, {0, 20000}}; setitimer(ITIMER_REAL, &soon, NULL); for (;;) pause(); }
static void kills_itself(void) { kill(getpid(), SIGKILL); }

/* Threads. */

static pthread_mutex_t locks[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static pthread_barrier_t barrier;
static atomic_int here;

static pthread_t start(void *(*function)(void *), void *argument)
{
    pthread_t thread;
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 16384);
    MUST(pthread_create(&thread, &small, function, argument) == 0);
    return thread;
}

static void waits_for_ever(void)
{
    static int word;
    syscall(SYS_futex, &word, 0, 0, NULL, NULL, 0);
}

/* Its timer goes on for ever too, but can end nothing. */
static void repeat_alarms(void)
{
    struct itimerval often = {{0, 5000}, {0, 5000}};
    MUST(setitimer(ITIMER_REAL, &often, NULL) == 0);
    waits_for_ever();
}

static void ignores_alarms(void)
{
    signal(SIGALRM, SIG_IGN);
    repeat_alarms();
}

static void blocks_alarms(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    repeat_alarms();
}

static void *locks_both(void *argument)
{
    long first = (long)argument;
    pthread_mutex_lock(&locks[first]);
    pthread_barrier_wait(&barrier);
    pthread_mutex_lock(&locks[1 - first]);
    return NULL;
}

static void deadlock(void)
{
    pthread_barrier_init(&barrier, NULL, 2);
    start(locks_both, (void *)1);
    locks_both((void *)0);
}

static void *meets(void *argument)
{
    here++;
    pthread_barrier_wait(&barrier);
    return argument;
}

static void thousand(void)
{
    static pthread_t threads[1000];
    pthread_barrier_init(&barrier, NULL, 1001);
    for (int i = 0; i < 1000; i++)
        threads[i] = start(meets, NULL);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < 1000; i++)
        pthread_join(threads[i], NULL);
    MUST(here == 1000);
}

/* Waits at the stack's end: of the one word that there is of it. */
static long clone_to(unsigned long flags, void *stack, void *tls)
{
    long result;
    register void *r10 __asm__("r10") = NULL;
    register void *r8 __asm__("r8") = tls;
    __asm__ volatile("syscall\n test %%rax, %%rax\n jnz 1f\n"
                     "2: mov $24, %%eax\n syscall\n jmp 2b\n"
                     "1:"
                     : "=a"(result)
                     : "a"(SYS_clone), "D"(flags), "S"(stack), "d"(NULL), "r"(r10), "r"(r8)
                     : "rcx", "r11", "memory");
    return result;
}

#define THREAD 0x10f00ul

static void endless(void)
{
    long made = 0, result;
    while ((result = clone_to(THREAD, NOWHERE, NULL)) > 0)
        made++;
    MUST(result == -EAGAIN && made > 500 && made < 2000);
}

static void *faults(void *argument)
{
    *(volatile char *volatile)argument = 1;
    return NULL;
}

static void thread_faults(void) { start(faults, NOWHERE); for (;;) sched_yield(); }
static void tls_nowhere(void) { clone_to(THREAD | 0x80000, NOWHERE, (void *)0x7ffffffe0000); MUST(clone_to(THREAD | 0x80000, NOWHERE, (void *)KERNEL) == -EINVAL); for (int i = 0; i < 10; i++) sched_yield(); }

static void *ends_all(void *argument)
{
    (void)argument;
    syscall(SYS_exit_group, 7);
    return NULL;
}

static void ends_in_session(void)
{
    long session = open_on(list, 0);
    MUST(session > 0 && syscall(START, session) == 0);
    start(ends_all, NULL);
    for (;;)
        ;
}

static void *stays(void *argument)
{
    usleep(30000);
    return argument;
}

static void first_ends(void)
{
    start(stays, NULL);
    pthread_exit(NULL);
}

static void word_nowhere(void)
{
    static atomic_int done;
    for (int i = 0; i < 2; i++) {
        syscall(SYS_set_tid_address, i ? (void *)KERNEL : NOWHERE);
        syscall(SYS_set_robust_list, (void *)KERNEL, 24);
    }
    start(stays, &done);
    syscall(SYS_exit, 0);
}

static void wild_futexes(void)
{
    static uint32_t words[64];
    struct timespec none = {0, 0};
    uint64_t state = 1;
    for (int i = 0; i < 20000; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        uint32_t r = (uint32_t)(state >> 33);
        void *places[] = {&words[r % 64], NOWHERE, (void *)KERNEL, (char *)words + r % 256, (void *)(state | 3)};
        syscall(SYS_futex, places[r % 5], r >> 3 & 15, r % 7, r & 64 ? &none : places[r / 5 % 5], places[r / 25 % 5], r);
        /* Never for ever. */
        if ((r >> 3 & 15) == 0 || (r >> 3 & 15) == 9)
            words[r % 64]++;
    }
}

static void wild_affinities(void)
{
    uint64_t state = 1;
    for (int i = 0; i < 2000; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        syscall(SYS_sched_setaffinity, i & 1 ? 0 : state >> 60, state >> 58 & 15, &state);
        syscall(SYS_sched_getaffinity, state >> 60, state >> 55 & 24, i & 2 ? (void *)KERNEL : NOWHERE);
    }
}

/* Memory. */

static void *map(size_t bytes, int access)
{
    return mmap(NULL, bytes, access, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

static void maps_all(void)
{
    size_t bytes = 64 << 20, all = 0;
    while (bytes >= 4096) {
        char *more = map(bytes, PROT_READ | PROT_WRITE);
        if (more == MAP_FAILED)
            bytes /= 2;
        else
            more[bytes - 1] = 1, all += bytes;
    }
    MUST(errno == ENOMEM && all > 16 << 20);
    MUST(open_on(list, 0) > 0 || errno == NO_MEMORY);
    MUST(clone_to(THREAD, NOWHERE, NULL) != 0);
}

static void maps_pages(void)
{
    long pages = 0;
    while (map(4096, PROT_READ) != MAP_FAILED)
        pages++;
    MUST(errno == ENOMEM && pages > 1000);
}

static void breaks_all(void)
{
    while (sbrk(8 << 20) != (void *)-1)
        ;
    MUST(errno == ENOMEM);
}

static void sets_aside(void)
{
    char *large = map(1ul << 44, PROT_NONE);
    MUST(large != MAP_FAILED);
    MUST(mprotect(large, 1ul << 44, PROT_READ) < 0 && errno == ENOMEM);
    /* Each wants tables of its own. */
    for (unsigned long page = 0; page < 1ul << 41; page += 1ul << 30)
        MUST(mprotect(large + page, 4096, PROT_READ | PROT_WRITE) == 0);
    MUST(mprotect(large, 1ul << 44, PROT_NONE) == 0 && munmap(large, 1ul << 44) == 0);
}

static void in_pieces(void)
{
    char *large = map(256 << 20, PROT_NONE);
    int error = 0;
    MUST(large != MAP_FAILED);
    for (size_t page = 0; page < 256 << 20 && !error; page += 8192)
        error = munmap(large + page, 4096) ? errno : 0;
    MUST(error == ENOMEM && munmap(large, 256 << 20) == 0);
}

static char *code(void) { return (char *)((uintptr_t)code & ~4095ul); }
static char *stack(void) { char here; return (char *)((uintptr_t)&here & ~4095ul); }

static void unmaps_stack(void) { munmap(stack() - 65536, 65536 + 4096); }
static void unmaps_code(void) { munmap(code() - (1 << 20), 2 << 20); }
static void unmaps_all(void) { munmap((void *)4096, 0x7ffffffe0000); }
static void protects_stack(void) { mprotect(stack(), 4096, PROT_NONE); }
static void protects_code(void) { mprotect(code(), 4096, PROT_NONE); munmap(code(), 4096); }
static void protects_all(void) { for (uintptr_t at = 0x200000; at < 0x800000; at += 4096) mprotect((void *)at, 4096, PROT_NONE); mprotect(stack(), 4096, PROT_NONE); }

static void writes_all(void)
{
    static char bytes[1 << 20];
    long now, all = 0;
    int file = open("attack.tmp", O_RDWR | O_CREAT | O_TRUNC, 0600);
    MUST(file >= 0);
    /* The last page ends within a piece of what is written. */
    for (size_t size = 1000; (now = write(file, bytes, size)) > 0; size = sizeof bytes)
        all += now;
    MUST(errno == ENOSPC && lseek(file, 0, SEEK_CUR) == all && lseek(file, 0, SEEK_END) == all);
    MUST(unlink("attack.tmp") == 0 && close(file) == 0);
    MUST(ftruncate(open("attack.tmp", O_RDWR | O_CREAT, 0600), 1l << 60) < 0 && errno == ENOSPC);
    MUST(unlink("attack.tmp") == 0);
}

static void opens_all(void)
{
    char name[300];
    int files = 0;
    for (; files < 100000; files++) {
        memset(name, 'a' + files % 26, 200);
        sprintf(name + 200, "%d", files);
        int file = open(name, O_RDWR | O_CREAT, 0600);
        if (file < 0)
            break;
        close(file);
    }
    MUST(files > 100 && files < 100000 && errno == ENOSPC);
    while (files-- > 0) {
        memset(name, 'a' + files % 26, 200);
        sprintf(name + 200, "%d", files);
        MUST(unlink(name) == 0);
    }
}

/* Names for what is in the ramdisk, of which there are more than of files. */
static void aliases(void)
{
    char name[300] = "", other[300];
    for (int i = 0; i < 5000; i++) {
        int dots = i % 50;
        for (int k = 0; k < dots; k++)
            memcpy(name + 1 + 2 * k, "./", 2);
        name[0] = '/';
        memset(name + 1 + 2 * dots, '/', i / 50);
        strcpy(name + 1 + 2 * dots + i / 50, "corpus.txt");
        MUST(access(name, F_OK) == 0);
        memset(other, 'a' + i % 26, 200);
        sprintf(other + 200, "%d", i);
        if (i % 5 == 0)
            MUST(rename(name, other) == 0 && rename(other, name) == 0);
    }
    MUST(open("attack.tmp", O_RDWR | O_CREAT, 0600) >= 0 && unlink("attack.tmp") == 0);
}

/* Waits until the other program of two has come to the same step: each has a file to show that it has. */
static void meet(int step)
{
    char name[32];
    sprintf(name, "here-%d-%d", which, step);
    MUST(close(open(name, O_RDWR | O_CREAT, 0600)) == 0);
    sprintf(name, "here-%d-%d", !which, step);
    while (access(name, F_OK) != 0)
        sched_yield();
}

/* Where another does the same at the same time, one of the two gets each name and each file, and the memory
 * that is not there for both. */
static void races(void)
{
    const size_t much = 100 << 20;
    int made = 0, renamed = 0, removed = 0;
    char name[32], other[32];

    for (int step = 0; step < 4; step++) {
        meet(step);
        for (int i = 0; i < 300 && step < 3; i++) {
            sprintf(name, "race-%d", i), sprintf(other, "raced-%d", i);
            int file = step == 0 ? open(name, O_RDWR | O_CREAT | O_EXCL, 0600) : -1;
            made += file >= 0 && close(file) == 0;
            renamed += step == 1 && rename(name, other) == 0;
            removed += step == 2 && unlink(other) == 0;
        }
    }
    char *got = map(much, PROT_READ | PROT_WRITE);
    meet(4);
    printf("races: %d %d %d %d\n", made, renamed, removed, got != MAP_FAILED);
}

/* Sessions and programs. */

/* That of the command line around it is not its own. */
static void stops_watch(void)
{
    for (long id = 0; id < 10; id++) {
        for (int call = START; call <= THRESHOLD; call++)
            MUST(refused(syscall(call, id, 0, 0, 0, 0)) == NO_SESSION);
        MUST(refused(syscall(0x7a110009, id, 0, 1000)) == NO_SESSION);
    }
    MUST(refused(open_on(list, 0)) == BUSY);
}

static void long_name(void)
{
    static char words[60000 + sizeof "status\0007"];
    memset(words, '/', 60000);
    memcpy(words + 60000, "status\0007", 9);
    long child = load(words, 60009);
    MUST(child > 0 && syscall(RUN, child) == 0 && syscall(AWAIT, child) == 7);
}

/* Ten thousand times; one in a hundred is closed. */
static void sessions(void)
{
    long session = 0;
    for (int i = 0; i < 10000; i++) {
        if (i % 100 == 0) {
            MUST(i == 0 || syscall(CLOSE, session) == 0);
            MUST(refused(syscall(CLOSE, session)) == NO_SESSION);
            session = open_on("instructions", 0);
            MUST(session > 0 && (i % 200 || syscall(START, session) == 0));
        }
        MUST(refused(open_on("instructions", 0)) == BUSY);
    }
}

/* Its own and three others' of 1,024 events each, and small ones up to the limit. */
static void large_sessions(void)
{
    long children[40], watched = 0;
    int count = 0;
    MUST(open_on(all_events(), 0) > 0);
    while (count < 40 && watched >= 0) {
        children[count] = load("status\0007", 9);
        MUST(children[count] > 0);
        watched = open_on(count < 3 ? many : "instructions", children[count]);
        count++;
    }
    MUST(errno == TOO_MANY_SESSIONS && count == 9);
    for (int i = 0; i < count; i++)
        MUST(syscall(RUN, children[i]) == 0 && syscall(AWAIT, children[i]) == 7);
}

static void programs(void)
{
    int count = 0;
    while (load("status\0007", 9) > 0)
        count++;
    MUST(errno == TOO_MANY_PROGRAMS && count == 32);
}

static long session(void)
{
    long session = open_on(list, 0);
    MUST(session > 0);
    return session;
}

static void ends_started(void) { syscall(START, session()); }
static void ends_open(void) { session(); }
static void faults_started(void) { syscall(START, session()); FAULT; }
static void killed_started(void) { syscall(START, session()); raise(SIGKILL); }
static void deadlock_started(void) { syscall(START, session()); waits_for_ever(); }

static char *bank(void)
{
    long id = session(), at = syscall(MAP, id);
    MUST(at > 0);
    syscall(START, id);
    return (char *)at;
}

static void writes_bank(void) { *(volatile char *)bank() = 1; }
static void frees_bank(void) { char *at = bank(); MUST(munmap(at - 4096, 8192) < 0 && mprotect(at, 4096, PROT_NONE) < 0 && *(volatile char *)at >= -128); }
static void stops_in_bank(void) { memset(bank() - 4096, 0xff, 4096); for (volatile int i = 0; i < 1000000; i++); }

static void threshold_to(unsigned long handler, unsigned long rsp)
{
    long id = session();
    MUST(syscall(MAP, id) > 0 && syscall(START, id) == 0);
    MUST(syscall(THRESHOLD, id, 0, 20000, handler, 0) == 0);
    __asm__ volatile("mov %0, %%rsp\n 1: jmp 1b" ::"r"(rsp));
}

static void threshold_on_no_stack(void) { threshold_to((unsigned long)count, KERNEL); }
static void threshold_nowhere(void) { threshold_to(0x7ffffffe0000, (unsigned long)stack()); }
static void returns_unasked(void) { MUST(refused(syscall(0x7a110008)) == 2010); }
static void unknown(void) { for (long i = 500; i < 20000; i++) MUST(syscall(i) < 0 && errno == ENOSYS); }

#define ATTACK(name) {#name, name}
static const struct {
    const char *name;
    void (*run)(void);
} attacks[] = {
    ATTACK(forge_code), ATTACK(forge_flags), ATTACK(forge_no_interrupts), ATTACK(forge_step),
    ATTACK(forge_to_kernel), ATTACK(forge_to_hole), ATTACK(forge_to_edge), ATTACK(forge_stack),
    ATTACK(forge_fpu), ATTACK(forge_fpu_nowhere), ATTACK(forge_no_fpu), ATTACK(forge_masks),
    ATTACK(no_frame), ATTACK(kernel_frame), ATTACK(handler_faults), ATTACK(handler_recurs),
    ATTACK(handler_in_kernel), ATTACK(stack_in_kernel), ATTACK(no_restorer), ATTACK(blocked_fault),
    ATTACK(storm), ATTACK(times_out), ATTACK(kills_itself), ATTACK(waits_for_ever),
    ATTACK(ignores_alarms), ATTACK(blocks_alarms), ATTACK(deadlock),
    ATTACK(thousand), ATTACK(endless), ATTACK(thread_faults), ATTACK(tls_nowhere), ATTACK(ends_in_session),
    ATTACK(first_ends), ATTACK(word_nowhere), ATTACK(wild_futexes), ATTACK(wild_affinities),
    ATTACK(maps_all), ATTACK(maps_pages), ATTACK(breaks_all), ATTACK(sets_aside), ATTACK(in_pieces),
    ATTACK(unmaps_stack), ATTACK(unmaps_code), ATTACK(unmaps_all), ATTACK(protects_stack),
    ATTACK(protects_code), ATTACK(protects_all), ATTACK(writes_all), ATTACK(opens_all), ATTACK(aliases), ATTACK(races),
    ATTACK(stops_watch), ATTACK(long_name),
    ATTACK(sessions), ATTACK(large_sessions), ATTACK(programs), ATTACK(ends_started), ATTACK(ends_open),
    ATTACK(faults_started), ATTACK(killed_started), ATTACK(deadlock_started), ATTACK(writes_bank),
    ATTACK(frees_bank), ATTACK(stops_in_bank), ATTACK(threshold_on_no_stack), ATTACK(threshold_nowhere),
    ATTACK(returns_unasked), ATTACK(unknown),
};

int main(int argc, char **argv)
{
    which = argc > 2 ? atoi(argv[2]) : 0;
    for (size_t i = 0; i < sizeof attacks / sizeof attacks[0]; i++)
        if (argc > 1 && !strcmp(argv[1], attacks[i].name)) {
            attacks[i].run();
            exit(0);
        }
    return 2;
}
