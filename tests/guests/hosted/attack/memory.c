/* All memory that the kernel gives out, in every size and way, and a program that unmaps or
 * protects its own stack and text. */
#include "attack.h"
#include <sys/mman.h>

static void *map(size_t bytes, int access)
{
    return mmap(NULL, bytes, access, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

static void mmap_until_refused(void)
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
    MUST(open_session("instructions,branches", 0) > 0 || errno == NO_MEMORY);
    MUST(clone_thread(0, UNMAPPED, NULL) != 0);
}

static void mmap_pages_until_refused(void)
{
    long pages = 0;
    while (map(4096, PROT_READ) != MAP_FAILED)
        pages++;
    MUST(errno == ENOMEM && pages > 1000);
}

static void brk_until_refused(void)
{
    while (sbrk(8 << 20) != (void *)-1)
        ;
    MUST(errno == ENOMEM);
}

static void reserve_16_tib(void)
{
    char *large = map(1ul << 44, PROT_NONE);
    MUST(large != MAP_FAILED);
    MUST(mprotect(large, 1ul << 44, PROT_READ) < 0 && errno == ENOMEM);
    /* Each of these pages needs page tables of its own. */
    for (unsigned long page = 0; page < 1ul << 41; page += 1ul << 30)
        MUST(mprotect(large + page, 4096, PROT_READ | PROT_WRITE) == 0);
    MUST(mprotect(large, 1ul << 44, PROT_NONE) == 0 && munmap(large, 1ul << 44) == 0);
}

static void munmap_every_second_page(void)
{
    char *large = map(256 << 20, PROT_NONE);
    int error = 0;
    MUST(large != MAP_FAILED);
    for (size_t page = 0; page < 256 << 20 && !error; page += 8192)
        error = munmap(large + page, 4096) ? errno : 0;
    MUST(error == ENOMEM && munmap(large, 256 << 20) == 0);
}

static char *text_page(void) { return (char *)((uintptr_t)text_page & ~4095ul); }

static char *stack_page(void)
{
    char local;
    return (char *)((uintptr_t)&local & ~4095ul);
}

static void munmap_stack(void) { munmap(stack_page() - 65536, 65536 + 4096); }
static void munmap_text(void) { munmap(text_page() - (1 << 20), 2 << 20); }
static void munmap_everything(void) { munmap((void *)4096, 0x7ffffffe0000); }
static void mprotect_stack(void) { mprotect(stack_page(), 4096, PROT_NONE); }

static void mprotect_text(void)
{
    mprotect(text_page(), 4096, PROT_NONE);
    munmap(text_page(), 4096);
}

static void mprotect_everything(void)
{
    for (uintptr_t at = 0x200000; at < 0x800000; at += 4096)
        mprotect((void *)at, 4096, PROT_NONE);
    mprotect(stack_page(), 4096, PROT_NONE);
}

const struct attack memory_attacks[] = {
    ATTACK(mmap_until_refused),
    ATTACK(mmap_pages_until_refused),
    ATTACK(brk_until_refused),
    ATTACK(reserve_16_tib),
    ATTACK(munmap_every_second_page),
    ATTACK(munmap_stack),
    ATTACK(munmap_text),
    ATTACK(munmap_everything),
    ATTACK(mprotect_stack),
    ATTACK(mprotect_text),
    ATTACK(mprotect_everything),
    {0},
};
