/* Prints its arguments, environment and standard input, and checks what it is told about itself and
 * the machine. Then makes calls that no kernel knows. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <mntent.h>
#include <pthread.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <sys/times.h>
#include <time.h>
#include <unistd.h>

#include "must.h"

extern char **environ;

/* The line of a file that begins with these letters. */
static const char *line_of(const char *path, const char *begins)
{
    static char line[1000];
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, begins, strlen(begins)) == 0) {
            fclose(file);
            return line;
        }
    return NULL;
}

static int about_itself(void)
{
    char path[1000] = {0}, name[16];
    pthread_attr_t attributes;
    void *stack;
    size_t bytes;
    int local, pid, ended = 0;
    MUST(readlink("/proc/self/exe", path, sizeof path) > 0 && access(path, F_OK) == 0);
    const char *line = line_of("/proc/self/status", "Pid:");
    MUST(line && sscanf(line, "Pid: %d", &pid) == 1 && pid == getpid());
    FILE *stat = fopen("/proc/self/stat", "r");
    MUST(stat && fscanf(stat, "%d (%15[^)])%n", &pid, name, &ended) == 2 && pid == getpid());
    MUST(strcmp(name, strrchr(path, '/') + 1) == 0 && ended > 0 && fclose(stat) == 0);
    /* The area of the stack has the address of a local variable. */
    MUST(pthread_getattr_np(pthread_self(), &attributes) == 0);
    MUST(pthread_attr_getstack(&attributes, &stack, &bytes) == 0);
    MUST((char *)stack < (char *)&local && (char *)&local < (char *)stack + bytes);
    FILE *maps = fopen("/proc/self/maps", "r");
    unsigned long start, end;
    char rest[1000];
    int found = 0;
    while (maps && fscanf(maps, "%lx-%lx %999[^\n]\n", &start, &end, rest) == 3)
        found += start <= (unsigned long)&local && (unsigned long)&local < end &&
                 strstr(rest, "[stack]") && strncmp(rest, "rw-p", 4) == 0;
    MUST(found == 1);
    return 0;
}

static int about_the_machine(void)
{
    struct sysinfo info;
    struct rusage usage;
    struct tms ticks;
    unsigned long kib;
    MUST(sysinfo(&info) == 0 && info.mem_unit > 0 && info.totalram >= info.freeram);
    MUST(info.totalram * info.mem_unit > 64 << 20 && info.procs > 0);
    const char *line = line_of("/proc/meminfo", "MemTotal:");
    MUST(line && sscanf(line, "MemTotal: %lu kB", &kib) == 1);
    MUST(kib == info.totalram * info.mem_unit >> 10);
    MUST(line_of("/proc/cpuinfo", "processor") && line_of("/proc/cpuinfo", "model name"));
    FILE *mounts = setmntent("/proc/mounts", "r");
    struct mntent *mount = mounts ? getmntent(mounts) : NULL;
    MUST(mount && strcmp(mount->mnt_dir, "/") == 0 && endmntent(mounts) == 1);
    MUST(get_nprocs() >= 1 && sysconf(_SC_NPROCESSORS_CONF) >= get_nprocs());
    MUST(sysconf(_SC_CLK_TCK) == 100 && sysconf(_SC_PHYS_PAGES) > 1000);
    MUST(getrusage(RUSAGE_SELF, &usage) == 0 && usage.ru_maxrss > 0 && times(&ticks) > 0);
    long faults = usage.ru_minflt, pages = 64;
    char *fresh = mmap(NULL, pages << 12, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(fresh != MAP_FAILED);
    for (long page = 0; page < pages; page++)
        fresh[page << 12] = 1;
    MUST(getrusage(RUSAGE_SELF, &usage) == 0 && usage.ru_minflt >= faults + pages);
    MUST(usage.ru_minflt <= faults + pages + 8 && usage.ru_majflt == 0);
    long switches = usage.ru_nvcsw;
    MUST(usleep(20000) == 0 && getrusage(RUSAGE_SELF, &usage) == 0);
    MUST(usage.ru_nvcsw > switches);
    MUST(getrusage(77, &usage) < 0 && errno == EINVAL && line_of("/etc/passwd", "root:"));
    return 0;
}

int main(int argc, char **argv)
{
    char text[100];
    ssize_t bytes;
    for (int i = 1; i < argc; i++)
        printf("[%s]", argv[i]);
    for (char **variable = environ; *variable; variable++)
        printf(" %s", *variable);
    bytes = read(0, text, 12);
    printf(" <%.*s>\n", (int)bytes, text);
    if (about_itself() || about_the_machine())
        return 1;
    time_t now = time(NULL);
    printf("%.4s\n", ctime(&now) + 20);
    for (int i = 0; i < 3; i++)
        MUST(syscall(9999) < 0 && errno == ENOSYS);
    int huge = MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB;
    MUST(mmap(NULL, 4096, PROT_READ, huge, -1, 0) == MAP_FAILED);
    puts("words: done");
    return 0;
}
