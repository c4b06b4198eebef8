/* Compresses and decompresses parts of a file by libbz2: `bzip2 FILE PARTS`. */
#include <bzlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PART = 200 << 10, STEP = 190001, ROOM = 2 * PART };

int main(int argc, char **argv)
{
    FILE *file = argc == 3 ? fopen(argv[1], "rb") : NULL;
    if (!file)
        return 2;
    size_t most = 4 << 20, sum = 0;
    char *text = malloc(most), *packed = malloc(ROOM), *back = malloc(ROOM);
    size_t size = fread(text, 1, most, file);
    for (int part = 0; part < atoi(argv[2]); part++) {
        char *from = text + (size_t)part * STEP % (size - PART);
        unsigned packed_size = ROOM, back_size = ROOM;
        if (BZ2_bzBuffToBuffCompress(packed, &packed_size, from, PART, 9, 0, 30) ||
            BZ2_bzBuffToBuffDecompress(back, &back_size, packed, packed_size, 0, 0) ||
            back_size != PART || memcmp(back, from, PART))
            return 1;
        sum += packed_size;
    }
    printf("bzip2: %zu\n", sum);
    return 0;
}
