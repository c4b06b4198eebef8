/* Compresses a file on several threads and decompresses it: `xz FILE` writes FILE.xz. */
#include <lzma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
    if (!file)
        return 2;
    size_t most = 600 << 10, room = 2 * most;
    uint8_t *text = malloc(most), *back = malloc(most), *packed = malloc(room);
    size_t read = fread(text, 1, most, file);
    lzma_stream stream = LZMA_STREAM_INIT;
    lzma_mt options = { .threads = 3, .block_size = 200 << 10, .preset = 1,
                        .check = LZMA_CHECK_SHA256 };
    if (lzma_stream_encoder_mt(&stream, &options) != LZMA_OK)
        return 1;
    stream.next_in = text, stream.avail_in = read;
    stream.next_out = packed, stream.avail_out = room;
    lzma_ret status = lzma_code(&stream, LZMA_FINISH);
    size_t size = room - stream.avail_out;
    lzma_end(&stream);
    uint64_t limit = UINT64_MAX;
    size_t in = 0, out = 0;
    lzma_ret decoded = lzma_stream_buffer_decode(&limit, 0, NULL, packed, &in, size, back, &out, most);
    printf("xz: %d %d, %zu to %zu, %d\n", status, decoded, read, size,
           out == read && !memcmp(text, back, read));
    char name[1000];
    snprintf(name, sizeof name, "%s.xz", argv[1]);
    FILE *to = fopen(name, "wb");
    return !to || fwrite(packed, 1, size, to) != size || fclose(to);
}
