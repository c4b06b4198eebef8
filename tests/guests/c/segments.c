/* Checks that mmap and brk never give addresses of the program's own segments or heap. Linked at
 * the start of the kernel's mmap area, where neither a C library nor libtally.a can be linked. */
#include <stddef.h>
#include <stdint.h>

enum { WRITE = 1, MMAP = 9, MUNMAP = 11, BRK = 12, EXIT = 60 };
enum { PROT_NONE = 0, PROT_READ_WRITE = 3, MAP_PRIVATE_ANONYMOUS = 0x22 };
enum { PAGE = 4096, MAPPINGS = 64, MAPPING_BYTES = 8 * PAGE };

/* First and last address of the segments, from the linker. */
extern char __executable_start[], _end[];

static volatile char initialized[3 * PAGE] = "data";
static volatile char zeroed[3 * PAGE];
static uint64_t mappings[MAPPINGS];

static int64_t call(int64_t number, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    int64_t result;
    register uint64_t r10 __asm__("r10") = d;
    register uint64_t r8 __asm__("r8") = UINT64_MAX;
    register uint64_t r9 __asm__("r9") = 0;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

static void say(const char *text)
{
    size_t bytes = 0;
    while (text[bytes])
        bytes++;
    call(WRITE, 1, (uint64_t)text, bytes, 0);
}

__attribute__((noreturn)) static void end(int status)
{
    call(EXIT, (uint64_t)status, 0, 0, 0);
    __builtin_unreachable();
}

static void check(int holds, const char *what)
{
    if (holds)
        return;
    say("FAILED ");
    say(what);
    say("\n");
    end(1);
}

static int overlaps(uint64_t start, uint64_t bytes, uint64_t other, uint64_t other_end)
{
    return start < other_end && other < start + bytes;
}

/* Maps regions of which none may lie on the segments or between `heap` and the end of the heap. */
static void map_all(uint64_t protection, uint64_t heap)
{
    for (int i = 0; i < MAPPINGS; i++) {
        int64_t at = call(MMAP, 0, MAPPING_BYTES, protection, MAP_PRIVATE_ANONYMOUS);
        check(at > 0, "mmap is refused");
        uint64_t start = (uint64_t)at, heap_end = (uint64_t)call(BRK, 0, 0, 0, 0);
        check(!overlaps(start, MAPPING_BYTES, (uint64_t)__executable_start, (uint64_t)_end),
              "mmap gives an address of the program's segments");
        check(!overlaps(start, MAPPING_BYTES, heap, heap_end), "mmap gives an address of the heap");
        mappings[i] = start;
    }
}

static void unmap_all(void)
{
    for (int i = 0; i < MAPPINGS; i++)
        check(call(MUNMAP, mappings[i], MAPPING_BYTES, 0, 0) == 0, "munmap is refused");
}

__attribute__((used)) static void start(void)
{
    uint64_t heap = (uint64_t)call(BRK, 0, 0, 0, 0), more = heap + 5 * PAGE;

    check((uint64_t)__executable_start == 0x100000000000, "the program is linked elsewhere");
    map_all(PROT_NONE, heap);
    /* The heap does not grow over a mapping, which has no pages here. */
    check((uint64_t)call(BRK, mappings[0] + PAGE, 0, 0, 0) == heap,
          "the heap grows over a mapping");
    unmap_all();
    check((uint64_t)call(BRK, more, 0, 0, 0) == more, "the heap does not grow");
    *(volatile char *)heap = 1;
    map_all(PROT_NONE, heap);
    unmap_all();
    map_all(PROT_READ_WRITE, heap);
    unmap_all();
    check(*(volatile char *)heap == 1 && initialized[3] == 'a' &&
          zeroed[PAGE] == 0, "memory has changed");
    say("segments: done\n");
    end(0);
}

__asm__(".globl _start\n_start:\n and $-16, %rsp\n call start\n");
