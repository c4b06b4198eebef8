/* `speaks STATUS WORD…` writes its words to standard output, bytes that are no text to standard
 * error, and ends with the status. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    static const char bytes[] = {'n', 'o', 't', 'e', 0, (char)0xff, '\n', 'x'};
    for (int i = 1; i < argc; i++)
        printf("[%s]", argv[i]);
    fflush(stdout);
    if (write(STDERR_FILENO, bytes, sizeof bytes) != sizeof bytes)
        return 1;
    puts("\nspeaks: done");
    return argc > 1 ? atoi(argv[1]) : 0;
}
