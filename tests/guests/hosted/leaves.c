/* Leaves files, folders and links behind: `leaves` those of the first program, `leaves TEXT` those
 * of another, which appends to a file of the first and changes the file TEXT. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "must.h"

/* Writes `count` numbers to a new file, none of which equals its neighbours. */
static void write_numbers(const char *name, unsigned count)
{
    unsigned *numbers = malloc(count * sizeof *numbers);
    MUST(numbers);
    for (unsigned i = 0; i < count; i++)
        numbers[i] = i * 2654435761U;
    int fd = open(name, O_WRONLY | O_CREAT | O_EXCL, 0644);
    MUST(fd >= 0);
    for (size_t done = 0; done < count * sizeof *numbers;) {
        ssize_t now = write(fd, (char *)numbers + done, count * sizeof *numbers - done);
        MUST(now > 0);
        done += now;
    }
    MUST(close(fd) == 0);
    free(numbers);
}

static void first(void)
{
    MUST(mkdir("made", 0755) == 0 && mkdir("made/deep", 0755) == 0 && mkdir("made/empty", 0755) == 0);
    write_numbers("made/large", 10 << 20);
    write_numbers("made/deep/a name with blanks", 3);
    write_numbers("made/no bytes", 0);
    MUST(link("made/deep/a name with blanks", "second name") == 0);
    MUST(symlink("made/deep", "link to folder") == 0 && symlink("/nowhere", "made/dangling") == 0);
    /* Of what it removed nothing is left. */
    write_numbers("removed", 100);
    MUST(unlink("removed") == 0 && mkdir("gone", 0755) == 0 && rmdir("gone") == 0);
    /* Zeros, and bytes written by a mapping. */
    int fd = open("mapped", O_RDWR | O_CREAT, 0644);
    MUST(fd >= 0 && ftruncate(fd, 10001) == 0);
    char *bytes = mmap(NULL, 10001, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    MUST(bytes != MAP_FAILED);
    memcpy(bytes + 8190, "across two pages", 16);
    MUST(munmap(bytes, 10001) == 0 && close(fd) == 0);
}

static void other(const char *text)
{
    int fd = open("shared", O_WRONLY | O_CREAT | O_APPEND, 0644);
    MUST(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) && close(fd) == 0);
    fd = open(text, O_WRONLY);
    MUST(fd >= 0 && pwrite(fd, "changed", 7, 5000) == 7 && close(fd) == 0);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        other(argv[1]);
    else
        first();
    puts("leaves: done");
    return 0;
}
