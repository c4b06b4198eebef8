/* Encodes made-up music as MP3 by LAME: `lame TENTHS`, in tenths of a second. */
#include "sound.h"
#include <lame/lame.h>
#include <stdio.h>
#include <stdlib.h>

enum { SAMPLES = 4410 };

int main(int argc, char **argv)
{
    static float left[SAMPLES], right[SAMPLES];
    static unsigned char out[65536];
    lame_t lame = lame_init();
    lame_set_in_samplerate(lame, 44100);
    lame_set_brate(lame, 128);
    lame_set_quality(lame, 5);
    if (argc != 2 || lame_init_params(lame) < 0)
        return 2;
    long sample = 0, bytes = 0;
    for (int part = 0; part < atoi(argv[1]); part++) {
        for (int i = 0; i < SAMPLES; i++, sample++)
            left[i] = sound(sample), right[i] = 0.7f * left[i] + 0.3f * sound(sample + 9999);
        int size = lame_encode_buffer_ieee_float(lame, left, right, SAMPLES, out, sizeof out);
        if (size < 0)
            return 1;
        bytes += size;
    }
    bytes += lame_encode_flush(lame, out, sizeof out);
    printf("lame: %ld\n", bytes);
    lame_close(lame);
    return 0;
}
