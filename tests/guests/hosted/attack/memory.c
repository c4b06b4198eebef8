/* All memory that the kernel gives out, in every size and way, and a program that unmaps or
 * protects its own stack and text. */
#include "attack.h"
#include <fcntl.h>
#include <sys/mman.h>

static void *map(size_t bytes, int access)
{
    return mmap(NULL, bytes, access, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

static void mmap_until_refused(void)
{
    size_t bytes = 64 << 20, all = 0;
    while (bytes >= 4096) {
        if (map(bytes, PROT_READ | PROT_WRITE) == MAP_FAILED)
            bytes /= 2;
        else
            all += bytes;
    }
    MUST(errno == ENOMEM && all > 16 << 20);
    MUST(open_session("instructions,branches", 0) > 0 || errno == NO_MEMORY);
    MUST(clone_thread(0, UNMAPPED, NULL) != 0);
}

/* More than there is: the first page for which there is no memory ends the program. */
static void touch_until_killed(void)
{
    char *large = map(1ul << 40, PROT_READ | PROT_WRITE);
    MUST(large != MAP_FAILED);
    for (unsigned long page = 0; page < 1ul << 40; page += 4096)
        large[page] = 1;
}

/* The kernel touches the pages, and must refuse. */
static void getrandom_until_refused(void)
{
    char *large = map(1ul << 40, PROT_READ | PROT_WRITE);
    unsigned long page = 0;
    MUST(large != MAP_FAILED);
    while (syscall(SYS_getrandom, large + page, 8, 0) == 8)
        page += 4096;
    MUST((errno == ENOMEM || errno == EFAULT) && page > 16 << 20);
}

/* Each of these pages needs page tables of its own. */
static void touch_a_page_of_each_gigabyte(void)
{
    for (unsigned long area = 0; area < 1ul << 46; area += 1ul << 40) {
        char *large = map(1ul << 40, PROT_READ | PROT_WRITE);
        for (unsigned long page = 0; large != MAP_FAILED && page < 1ul << 40; page += 1ul << 30)
            large[page] = 1;
    }
}

static void mremap_to_and_fro(void)
{
    char *pages = map(4096, PROT_READ | PROT_WRITE);
    size_t bytes = 4096;
    for (int i = 0; i < 1000 && pages != MAP_FAILED; i++) {
        size_t next = 4096ul << (i * 7 % 13);
        pages[bytes - 1] = 1;
        map(4096, PROT_READ);
        pages = mremap(pages, bytes, next, MREMAP_MAYMOVE);
        bytes = next;
    }
    MUST(pages != MAP_FAILED);
    MUST(mremap(pages, 1ul << 46, 1ul << 47, MREMAP_MAYMOVE) == MAP_FAILED);
    MUST(mremap(pages, bytes, 1ul << 62, MREMAP_MAYMOVE) == MAP_FAILED);
    MUST(mremap((void *)0x7ffffffe0000, 4096, 8192, MREMAP_MAYMOVE) == MAP_FAILED);
}

/* Frames of a file that is cut off are freed, though they are mapped. */
static void truncate_a_mapped_file(void)
{
    for (int i = 0; i < 200; i++) {
        int fd = open("mapped-and-cut", O_RDWR | O_CREAT, 0600);
        MUST(fd >= 0 && ftruncate(fd, 1 << 20) == 0);
        char *all = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        MUST(all != MAP_FAILED);
        memset(all, i, 1 << 20);
        MUST(ftruncate(fd, 0) == 0 && close(fd) == 0);
        MUST(munmap(all, 1 << 20) == 0 && unlink("mapped-and-cut") == 0);
    }
}

static void map_behind_a_file(void)
{
    int fd = open("short", O_RDWR | O_CREAT, 0600);
    char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 1ul << 50);
    MUST(page != MAP_FAILED && unlink("short") == 0);
    *page = 1;
}

static void mmap_over_everything(void)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
    mmap((void *)4096, 0x7ffffffe0000, PROT_READ, flags, -1, 0);
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
    MUST(mprotect(large, 1ul << 44, PROT_READ) == 0);
    /* Each of these pages is an area of its own. */
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
    ATTACK(touch_until_killed),
    ATTACK(getrandom_until_refused),
    ATTACK(touch_a_page_of_each_gigabyte),
    ATTACK(mremap_to_and_fro),
    ATTACK(truncate_a_mapped_file),
    ATTACK(map_behind_a_file),
    ATTACK(mmap_over_everything),
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
