/* Folders, links, locks and descriptors' calls: prints the same here as under Linux, or names the
 * line of the first check that fails. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "must.h"

static int make(const char *path)
{
    int fd = open(path, O_CREAT | O_WRONLY, 0644);
    return fd < 0 ? -1 : close(fd);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int list(const char *path)
{
    struct dirent **names;
    int count = scandir(path, &names, NULL, by_name);
    printf("%s:", path);
    for (int i = 0; i < count; i++) {
        printf(" %s/%d", names[i]->d_name, names[i]->d_type);
        free(names[i]);
    }
    printf("\n");
    if (count >= 0)
        free(names);
    return count;
}

static int trees(void)
{
    char text[4096];
    struct stat a, b;
    MUST(mkdir("tree", 0755) == 0 && mkdir("tree/in", 0755) == 0 && make("tree/in/file") == 0);
    FAILS(mkdir("tree", 0755), EEXIST);
    FAILS(mkdir("no/such", 0755), ENOENT);
    FAILS(mkdir("tree/in/file/x", 0755), ENOTDIR);
    FAILS(make("tree/new/file"), ENOENT);
    FAILS(open("tree", O_RDWR), EISDIR);
    FAILS(open("tree/in/file", O_RDONLY | O_DIRECTORY), ENOTDIR);
    FAILS(open("tree/in/file/", O_RDONLY), ENOTDIR);
    FAILS(rmdir("tree"), ENOTEMPTY);
    FAILS(rmdir("tree/in/file"), ENOTDIR);
    FAILS(unlink("tree/in"), EISDIR);
    MUST(list("tree") == 3 && list("tree/in") == 3);
    MUST(stat("tree/in/.", &a) == 0 && stat("./tree//in/../in", &b) == 0 && a.st_ino == b.st_ino);
    MUST(S_ISDIR(a.st_mode));

    /* The folder in which a program is. */
    MUST(getcwd(text, sizeof text));
    size_t here = strlen(text);
    MUST(chdir("tree/in") == 0 && getcwd(text, sizeof text) &&
         strcmp(text + here + (here > 1 ? 0 : -1), "/tree/in") == 0);
    MUST(access("file", F_OK) == 0 && access("../in/file", R_OK) == 0 && chdir("..") == 0);
    FAILS(chdir("in/file"), ENOTDIR);
    FAILS((long)getcwd(text, 2) - 1, ERANGE);
    int folder = open("in", O_RDONLY | O_DIRECTORY);
    MUST(folder >= 0 && chdir("..") == 0);
    MUST(faccessat(folder, "file", F_OK, 0) == 0 && mkdirat(folder, "deep", 0700) == 0);
    int file = openat(folder, "file", O_RDWR);
    MUST(file >= 0 && fstatat(folder, "", &a, AT_EMPTY_PATH) == 0 && S_ISDIR(a.st_mode));
    FAILS(openat(file, "x", O_RDONLY), ENOTDIR);
    FAILS(read(folder, text, 1), EISDIR);
    MUST(unlinkat(folder, "deep", AT_REMOVEDIR) == 0 && fchdir(folder) == 0);
    MUST(access("file", F_OK) == 0 && chdir("../..") == 0);

    /* Renaming. */
    FAILS(rename("tree", "tree/in/tree"), EINVAL);
    FAILS(rename("tree/in", "tree/in/file"), EINVAL);
    MUST(make("tree/other") == 0);
    FAILS(rename("tree/other", "tree/in"), EISDIR);
    FAILS(rename("tree/in", "tree/other"), ENOTDIR);
    MUST(rename("tree/in", "tree/out") == 0 && access("tree/out/file", F_OK) == 0);
    MUST(mkdir("tree/empty", 0700) == 0 && rename("tree/out", "tree/empty") == 0);
    MUST(list("tree") == 4 && faccessat(folder, "file", F_OK, 0) == 0);
    FAILS(renameat2(AT_FDCWD, "tree/other", AT_FDCWD, "tree/empty/file", RENAME_NOREPLACE), EEXIST);
    MUST(rename("tree/other", "tree/empty/file") == 0);
    MUST(unlink("tree/empty/file") == 0 && rmdir("tree/empty") == 0 && rmdir("tree") == 0);
    MUST(close(folder) == 0 && close(file) == 0);
    return 0;
}

static int links(void)
{
    char text[100];
    struct stat a, b;
    MUST(mkdir("links", 0755) == 0 && make("links/file") == 0);
    MUST(link("links/file", "links/again") == 0 && stat("links/again", &a) == 0 && a.st_nlink == 2);
    FAILS(link("links/file", "links/again"), EEXIST);
    FAILS(link("links", "folder"), EPERM);
    MUST(unlink("links/file") == 0 && stat("links/again", &b) == 0 && b.st_nlink == 1);
    MUST(a.st_ino == b.st_ino);
    MUST(symlink("again", "links/soft") == 0 && symlink("../links", "links/up") == 0);
    MUST(stat("links/up/soft", &a) == 0 && a.st_ino == b.st_ino);
    MUST(lstat("links/up/soft", &a) == 0 && S_ISLNK(a.st_mode) && a.st_size == 5);
    MUST(readlink("links/soft", text, sizeof text) == 5 && memcmp(text, "again", 5) == 0);
    MUST(readlink("links/soft", text, 2) == 2);
    FAILS(readlink("links/again", text, sizeof text), EINVAL);
    FAILS(open("links/soft", O_RDONLY | O_NOFOLLOW), ELOOP);
    MUST(symlink("two", "links/one") == 0 && symlink("one", "links/two") == 0);
    FAILS(open("links/one", O_RDONLY), ELOOP);
    MUST(symlink("missing", "links/broken") == 0);
    FAILS(open("links/broken", O_RDONLY), ENOENT);
    FAILS(open("links/broken", O_WRONLY | O_CREAT | O_EXCL, 0600), EEXIST);
    MUST(list("links") == 8);
    MUST(remove("links/one") == 0 && remove("links/two") == 0 && remove("links/broken") == 0);
    MUST(remove("links/soft") == 0 && remove("links/up") == 0 && remove("links/again") == 0);
    MUST(rmdir("links") == 0);
    return 0;
}

static int locks(void)
{
    int fd = open("locked", O_RDWR | O_CREAT, 0600), other = open("locked", O_RDWR);
    struct flock lock = {.l_type = F_WRLCK, .l_start = 10, .l_len = 10}, found;
    MUST(fd >= 0 && other >= 0 && fcntl(fd, F_SETLK, &lock) == 0);
    /* A program's own locks are not in its way; those of another open file are. */
    found = lock;
    MUST(fcntl(other, F_GETLK, &found) == 0 && found.l_type == F_UNLCK);
    lock.l_start = 15;
    MUST(fcntl(other, F_OFD_SETLK, &lock) < 0 && errno == EAGAIN);
    found = lock;
    MUST(fcntl(other, F_OFD_GETLK, &found) == 0 && found.l_type == F_WRLCK);
    MUST(found.l_start == 10 && found.l_len == 10);
    lock = (struct flock){.l_type = F_UNLCK, .l_start = 12, .l_len = 0};
    MUST(fcntl(fd, F_SETLKW, &lock) == 0);
    lock = (struct flock){.l_type = F_RDLCK, .l_start = 12, .l_len = 100};
    MUST(fcntl(other, F_OFD_SETLK, &lock) == 0 && fcntl(fd, F_SETLK, &lock) == 0);
    lock.l_type = 77;
    FAILS(fcntl(fd, F_SETLK, &lock), EINVAL);
    /* Closing any descriptor of the file releases the program's locks. */
    MUST(close(dup(fd)) == 0);
    lock = (struct flock){.l_type = F_WRLCK, .l_start = 0, .l_len = 12};
    MUST(fcntl(other, F_OFD_SETLK, &lock) == 0);
    MUST(flock(fd, LOCK_EX) == 0);
    FAILS(flock(other, LOCK_EX | LOCK_NB), EWOULDBLOCK);
    MUST(flock(fd, LOCK_SH) == 0 && flock(other, LOCK_SH | LOCK_NB) == 0);
    MUST(close(fd) == 0 && flock(other, LOCK_EX | LOCK_NB) == 0 && flock(other, LOCK_UN) == 0);
    MUST(close(other) == 0 && unlink("locked") == 0);
    return 0;
}

static int others(void)
{
    char text[64] = {0};
    struct statvfs room;
    struct stat a;
    int fd = memfd_create("memory", 0);
    MUST(fd >= 0 && ftruncate(fd, 8192) == 0 && fallocate(fd, 0, 8000, 1000) == 0);
    MUST(fstat(fd, &a) == 0 && a.st_size == 9000 && posix_fallocate(fd, 0, 100) == 0);
    FAILS(fallocate(fd, 0, 0, 0), EINVAL);
    struct iovec parts[2] = {{"ab", 2}, {"cd", 2}}, back[1] = {{text, 4}};
    MUST(pwritev(fd, parts, 2, 4094) == 4 && preadv(fd, back, 1, 4094) == 4);
    MUST(strcmp(text, "abcd") == 0 && lseek(fd, 0, SEEK_CUR) == 0);
    FAILS(lseek(fd, 10000, SEEK_DATA), ENXIO);
    char *shared = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    MUST(shared != MAP_FAILED && close(fd) == 0 && memcmp(shared + 4094, "abcd", 4) == 0);
    MUST(statvfs(".", &room) == 0 && room.f_bavail > 0 && room.f_namemax == 255);
    MUST(statvfs("/no/such", &room) < 0 && errno == ENOENT);
    int zero = open("/dev/zero", O_RDWR), random = open("/dev/urandom", O_RDONLY);
    memset(text, 1, sizeof text);
    MUST(read(zero, text, 8) == 8 && memcmp(text, (char[8]){0}, 8) == 0 && write(zero, text,
         8) == 8);
    MUST(read(random, text, 16) == 16 && read(random, text + 16, 16) == 16);
    MUST(memcmp(text, text + 16, 16) != 0 && fstat(zero, &a) == 0 && S_ISCHR(a.st_mode));
    MUST(close(zero) == 0 && close(random) == 0);
    /* Dates: of the last change, and as they are set. */
    struct timespec times[2] = {{1, 2}, {86400, 5}};
    MUST(make("dated") == 0 && stat("dated", &a) == 0 && a.st_mtime >= time(NULL) - 60);
    MUST(utimensat(AT_FDCWD, "dated", times, 0) == 0 && stat("dated", &a) == 0);
    MUST(a.st_mtim.tv_sec == 86400 && a.st_mtim.tv_nsec == 5);
    times[1].tv_nsec = UTIME_OMIT;
    MUST(utimensat(AT_FDCWD, "dated", times, 0) == 0 && stat("dated", &a) == 0);
    MUST(a.st_mtim.tv_sec == 86400 && a.st_mtim.tv_nsec == 5);
    int dated = open("dated", O_WRONLY);
    MUST(write(dated, "x", 1) == 1 && fstat(dated, &a) == 0 && a.st_mtime > 86400);
    times[1].tv_nsec = 1000000000;
    FAILS(futimens(dated, times), EINVAL);
    MUST(futimens(dated, NULL) == 0 && close(dated) == 0 && unlink("dated") == 0);
    /* cmp and grep print nothing if the output is the null device. */
    struct stat null, out[2];
    MUST(stat("/dev/null", &null) == 0 && S_ISCHR(null.st_mode));
    MUST(fstat(1, &out[0]) == 0 && stat("/dev/stdout", &out[1]) == 0);
    for (int i = 0; i < 2; i++)
        MUST(out[i].st_dev != null.st_dev || out[i].st_ino != null.st_ino);
    /* ls prints an error for every other errno. */
    MUST(getxattr(".", "user.x", text, 8) < 0 && (errno == ENODATA || errno == EOPNOTSUPP));
    FAILS(lgetxattr("/no/such", "user.x", text, 8), ENOENT);
    FAILS(fgetxattr(-1, "user.x", text, 8), EBADF);
    char name[300];
    memset(name, 'n', sizeof name);
    name[299] = 0;
    FAILS(open(name, O_CREAT | O_WRONLY, 0600), ENAMETOOLONG);
    name[255] = 0;
    MUST(make(name) == 0 && unlink(name) == 0);
    FAILS(open("", O_RDONLY), ENOENT);
    return 0;
}

/* A folder that a program is in has no name there. */
static int unnamed(void)
{
    MUST(mkdir("first", 0755) == 0 && chdir("first") == 0 && make("file") == 0);
    FAILS(rename(".", "../other"), EBUSY);
    FAILS(rename("file", ".."), EBUSY);
    FAILS(rmdir("."), EINVAL);
    FAILS(rmdir("./"), EINVAL);
    FAILS(rmdir(".."), ENOTEMPTY);
    MUST(rename("../first", "../second") == 0);
    MUST(make("moved") == 0 && unlink("moved") == 0);
    FAILS(rename(".", "../other"), EBUSY);
    FAILS(rename("./", "../other"), EBUSY);
    FAILS(rename("file", "./"), EBUSY);
    FAILS(rmdir("./"), EINVAL);
    FAILS(unlink("."), EISDIR);
    /* A link to it, with a slash behind. */
    MUST(symlink(".", "self") == 0 && rmdir("self/") < 0 && unlink("self") == 0);
    MUST(unlink("file") == 0 && rmdir("../second") == 0);
    FAILS(unlink("."), EISDIR);
    FAILS(rename(".", "../other"), EBUSY);
    FAILS(rename("../other", "."), EBUSY);
    FAILS(rmdir("./"), EINVAL);
    /* What was removed takes no names, by whichever way it lost its own. */
    FAILS(open("file", O_CREAT | O_WRONLY, 0600), ENOENT);
    FAILS(mkdir("folder", 0755), ENOENT);
    FAILS(symlink("file", "link"), ENOENT);
    MUST(make("../other") == 0);
    FAILS(rename("../other", "other"), ENOENT);
    MUST(unlink("../other") == 0 && chdir("..") == 0);
    MUST(mkdir("old", 0755) == 0 && mkdir("new", 0755) == 0 && chdir("old") == 0);
    MUST(rename("../new", "../old") == 0);
    FAILS(mkdir("folder", 0755), ENOENT);
    MUST(chdir("../old") == 0 && mkdir("folder", 0755) == 0 && rmdir("folder") == 0);
    MUST(rmdir("../old") == 0);
    return chdir("..");
}

int main(void)
{
    int failed = trees() || unnamed() || links() || locks() || others();
    puts(failed ? "folders: failed" : "folders: done");
    return failed;
}
