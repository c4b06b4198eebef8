/* Files until there is no room for more: bytes, names, and other spellings of a name. */
#include "attack.h"
#include <fcntl.h>
#include <sched.h>

static void write_until_full(void)
{
    static char bytes[1 << 20];
    long written, all = 0;
    int file = open("attack.tmp", O_RDWR | O_CREAT | O_TRUNC, 0600);
    MUST(file >= 0);
    /* An odd size first, so that the last page ends inside a write. */
    for (size_t size = 1000; (written = write(file, bytes, size)) > 0; size = sizeof bytes)
        all += written;
    MUST(errno == ENOSPC && lseek(file, 0, SEEK_CUR) == all && lseek(file, 0, SEEK_END) == all);
    MUST(unlink("attack.tmp") == 0 && close(file) == 0);
    MUST(ftruncate(open("attack.tmp", O_RDWR | O_CREAT, 0600), 1l << 60) < 0 && errno == ENOSPC);
    MUST(unlink("attack.tmp") == 0);
}

/* A name of 200 letters and the number. */
static void long_name(char *name, int number)
{
    memset(name, 'a' + number % 26, 200);
    sprintf(name + 200, "%d", number);
}

static void create_files_until_refused(void)
{
    char name[300];
    int files = 0;
    for (; files < 100000; files++) {
        long_name(name, files);
        int file = open(name, O_RDWR | O_CREAT, 0600);
        if (file < 0)
            break;
        close(file);
    }
    MUST(files > 100 && files < 100000 && errno == ENOSPC);
    while (files-- > 0) {
        long_name(name, files);
        MUST(unlink(name) == 0);
    }
}

/* More spellings of a ramdisk file's path than the kernel keeps names. */
static void path_aliases(void)
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
        long_name(other, i);
        if (i % 5 == 0)
            MUST(rename(name, other) == 0 && rename(other, name) == 0);
    }
    MUST(open("attack.tmp", O_RDWR | O_CREAT, 0600) >= 0 && unlink("attack.tmp") == 0);
}

/* Waits until the other instance has reached the same step. Each instance creates a file for it. */
static void meet(int step)
{
    char name[32];
    sprintf(name, "here-%d-%d", instance, step);
    MUST(close(open(name, O_RDWR | O_CREAT, 0600)) == 0);
    sprintf(name, "here-%d-%d", !instance, step);
    while (access(name, F_OK) != 0)
        sched_yield();
}

/* Two instances create, rename and remove the same files: prints how many of each this instance
 * got. */
static void race_for_files(void)
{
    int created = 0, renamed = 0, removed = 0;
    char name[32], other[32];

    for (int step = 0; step < 4; step++) {
        meet(step);
        for (int i = 0; i < 300 && step < 3; i++) {
            sprintf(name, "race-%d", i), sprintf(other, "raced-%d", i);
            int file = step == 0 ? open(name, O_RDWR | O_CREAT | O_EXCL, 0600) : -1;
            created += file >= 0 && close(file) == 0;
            renamed += step == 1 && rename(name, other) == 0;
            removed += step == 2 && unlink(other) == 0;
        }
    }
    printf("race: %d %d %d\n", created, renamed, removed);
}

const struct attack file_attacks[] = {
    ATTACK(write_until_full),
    ATTACK(create_files_until_refused),
    ATTACK(path_aliases),
    ATTACK(race_for_files),
    {0},
};
