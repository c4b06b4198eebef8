/* Compresses and decompresses parts of a file by liblzma: `xz FILE PARTS`. */
#include <lzma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PART = 100 << 10, STEP = 190001, ROOM = 2 * PART };

int main(int argc, char **argv)
{
    FILE *file = argc == 3 ? fopen(argv[1], "rb") : NULL;
    if (!file)
        return 2;
    size_t most = 4 << 20, sum = 0;
    uint8_t *text = malloc(most), *packed = malloc(ROOM), *back = malloc(ROOM);
    size_t size = fread(text, 1, most, file);
    for (int part = 0; part < atoi(argv[2]); part++) {
        uint8_t *from = text + (size_t)part * STEP % (size - PART);
        size_t packed_size = 0, in = 0, back_size = 0;
        uint64_t limit = UINT64_MAX;
        if (lzma_easy_buffer_encode(4, LZMA_CHECK_CRC64, NULL, from, PART, packed, &packed_size,
                                    ROOM) ||
            lzma_stream_buffer_decode(&limit, 0, NULL, packed, &in, packed_size, back, &back_size,
                                      ROOM) ||
            back_size != PART || memcmp(back, from, PART))
            return 1;
        sum += packed_size;
    }
    printf("xz: %zu\n", sum);
    return 0;
}
