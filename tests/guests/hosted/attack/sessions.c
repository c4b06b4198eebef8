/* Sessions and programs: as many as the kernel grants, ends inside a session, and writes to the
 * bank. */
#include "attack.h"
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

static const char list[] = "instructions,branches";
static char large_list[16 * 1024];

static long error_of(long result)
{
    return result < 0 ? errno : 0;
}

static long load(const char *words, size_t bytes)
{
    return syscall(PROGRAM_LOAD, words, bytes, NULL, 0);
}

static long load_status(void)
{
    return load("status\0007", 9);
}

/* Writes a list of 1,024 events. */
static void fill_large_list(void)
{
    char *end = large_list;
    for (unsigned i = 0; i < 1024; i++)
        end += sprintf(end, "%sr%07x", i ? "," : "",
                       (1 + i % 200) << 24 | (1 + i / 200) << 8 | 0xc4);
}

/* A session that the kernel opened around this program is not this program's to control. */
static void control_session_of_kernel(void)
{
    for (long id = 0; id < 10; id++) {
        for (int call = SESSION_START; call <= SESSION_THRESHOLD; call++)
            MUST(error_of(syscall(call, id, 0, 0, 0, 0)) == NO_SESSION);
        MUST(error_of(syscall(SESSION_SAMPLE, id, 0, 1000)) == NO_SESSION);
    }
    MUST(error_of(open_session(list, 0)) == BUSY);
}

static void long_program_path(void)
{
    static char words[60000 + sizeof "status\0007"];
    memset(words, '/', 60000);
    memcpy(words + 60000, "status\0007", 9);
    long child = load(words, 60009);
    MUST(child > 0 && syscall(PROGRAM_RUN, child) == 0 && syscall(PROGRAM_WAIT, child) == 7);
}

/* Opens ten thousand times: in a hundred times eight sessions, and 92 that are refused. */
static void reopen_sessions(void)
{
    long sessions[8];
    for (int i = 0; i < 10000; i++) {
        int open = i % 100;
        if (open >= 8) {
            MUST(error_of(open_session("instructions", 0)) == TOO_MANY_SESSIONS);
        } else {
            sessions[open] = open_session("instructions", 0);
            MUST(sessions[open] > 0 && (open % 2 || syscall(SESSION_START, sessions[open]) == 0));
        }
        for (int closed = 0; open == 99 && closed < 8; closed++) {
            MUST(syscall(SESSION_CLOSE, sessions[closed]) == 0);
            MUST(error_of(syscall(SESSION_CLOSE, sessions[closed])) == NO_SESSION);
        }
    }
}

/* Its own eight sessions and three on other programs have 1,024 events. Small ones follow up to the
 * limit. */
static void sessions_of_1024_events(void)
{
    long children[40], session = 0;
    int count = 0;
    fill_large_list();
    for (int own = 0; own < 8; own++) {
        long opened = open_session(large_list, 0);
        MUST(opened > 0 && syscall(SESSION_START, opened) == 0);
    }
    while (count < 40 && session >= 0) {
        children[count] = load_status();
        MUST(children[count] > 0);
        session = open_session(count < 3 ? large_list : "instructions", children[count]);
        count++;
    }
    MUST(errno == TOO_MANY_SESSIONS && count == 9);
    for (int i = 0; i < count; i++)
        MUST(syscall(PROGRAM_RUN, children[i]) == 0 && syscall(PROGRAM_WAIT, children[i]) == 7);
}

static void load_programs_until_refused(void)
{
    int count = 0;
    while (load_status() > 0)
        count++;
    MUST(errno == TOO_MANY_PROGRAMS && count == 32);
}

static long open_list(void)
{
    long session = open_session(list, 0);
    MUST(session > 0);
    return session;
}

static void exit_in_session(void) { syscall(SESSION_START, open_list()); }
static void exit_with_open_session(void) { open_list(); }

static void fault_in_session(void)
{
    syscall(SESSION_START, open_list());
    write_to_unmapped();
}

static void sigkill_in_session(void)
{
    syscall(SESSION_START, open_list());
    raise(SIGKILL);
}

static void deadlock_in_session(void)
{
    syscall(SESSION_START, open_list());
    futex_wait_forever();
}

/* The first page of logical counters; the program's own page is before it. */
static char *bank(void)
{
    long session = open_list(), address = syscall(SESSION_MAP, session, 0, 0);
    MUST(address > 0);
    syscall(SESSION_START, session);
    return (char *)address;
}

static void write_to_bank(void) { *(volatile char *)bank() = 1; }

static void unmap_bank(void)
{
    char *at = bank();
    MUST(munmap(at - 4096, 8192) < 0 && mprotect(at, 4096, PROT_NONE) < 0);
    MUST(*(volatile char *)at >= -128);
}

static void overwrite_control_page(void)
{
    memset(bank() - 4096, 0xff, 4096);
    for (volatile int i = 0; i < 1000000; i++)
        ;
}

/* Sets a threshold that fires while the stack pointer is `rsp`. */
static void fire_threshold(unsigned long handler, unsigned long rsp)
{
    long session = open_list();
    MUST(syscall(SESSION_MAP, session, 0, 0) > 0 && syscall(SESSION_START, session) == 0);
    MUST(syscall(SESSION_THRESHOLD, session, 0, 20000, handler, 0) == 0);
    __asm__ volatile("mov %0, %%rsp\n 1: jmp 1b" ::"r"(rsp));
}

static void upcall_on_kernel_stack(void)
{
    fire_threshold((unsigned long)upcall_on_kernel_stack, KERNEL);
}

static void upcall_at_unmapped_address(void)
{
    char local[4096];
    fire_threshold(0x7ffffffe0000, (unsigned long)local & ~4095ul);
}

static void upcall_return_without_upcall(void)
{
    MUST(error_of(syscall(UPCALL_RETURN)) == WRONG_STATE);
}

static long counted;

static void *count_this_thread(void *argument)
{
    uint64_t words[64];
    MUST(syscall(SESSION_THREAD, counted, words, 64) == 2);
    MUST(error_of(syscall(SESSION_THREAD, counted, KERNEL, 64)) == BAD_POINTER);
    MUST(error_of(syscall(SESSION_THREAD, counted, UNMAPPED, INT64_MAX)) == BAD_POINTER);
    MUST(error_of(syscall(SESSION_THREAD, counted + 7, words, 64)) == NO_SESSION);
    return argument;
}

/* More threads are counted, one after another, than the kernel may keep counts of. */
static void counts_of_5000_threads(void)
{
    counted = open_list();
    MUST(error_of(syscall(SESSION_THREAD, counted, NULL, 1)) > 0);
    MUST(syscall(SESSION_START, counted) == 0);
    for (int i = 0; i < 5000; i++) {
        pthread_t thread;
        MUST(pthread_create(&thread, NULL, count_this_thread, NULL) == 0);
        MUST(pthread_join(thread, NULL) == 0);
    }
    MUST(syscall(SESSION_CLOSE, counted) == 0);
}

static void unknown_call_numbers(void)
{
    for (long i = 500; i < 20000; i++)
        MUST(syscall(i) < 0 && errno == ENOSYS);
}

const struct attack session_attacks[] = {
    ATTACK(control_session_of_kernel),
    ATTACK(long_program_path),
    ATTACK(reopen_sessions),
    ATTACK(sessions_of_1024_events),
    ATTACK(load_programs_until_refused),
    ATTACK(exit_in_session),
    ATTACK(exit_with_open_session),
    ATTACK(fault_in_session),
    ATTACK(sigkill_in_session),
    ATTACK(deadlock_in_session),
    ATTACK(write_to_bank),
    ATTACK(unmap_bank),
    ATTACK(overwrite_control_page),
    ATTACK(upcall_on_kernel_stack),
    ATTACK(upcall_at_unmapped_address),
    ATTACK(upcall_return_without_upcall),
    ATTACK(counts_of_5000_threads),
    ATTACK(unknown_call_numbers),
    {0},
};
