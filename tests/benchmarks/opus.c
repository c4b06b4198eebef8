/* Encodes made-up music by Opus: `opus TENTHS`, in tenths of a second. */
#include "sound.h"
#include <opus/opus.h>
#include <stdio.h>
#include <stdlib.h>

enum { SAMPLES = 960 };

int main(int argc, char **argv)
{
    static float in[2 * SAMPLES];
    static unsigned char out[4000];
    int error;
    OpusEncoder *opus = opus_encoder_create(48000, 2, OPUS_APPLICATION_AUDIO, &error);
    if (argc != 2 || error != OPUS_OK)
        return 2;
    long sample = 0, bytes = 0;
    for (int frame = 0; frame < 5 * atoi(argv[1]); frame++) {
        for (int i = 0; i < SAMPLES; i++, sample++)
            in[2 * i] = sound(sample), in[2 * i + 1] = 0.7f * in[2 * i];
        int size = opus_encode_float(opus, in, SAMPLES, out, sizeof out);
        if (size < 0)
            return 1;
        bytes += size;
    }
    printf("opus: %ld\n", bytes);
    opus_encoder_destroy(opus);
    return 0;
}
