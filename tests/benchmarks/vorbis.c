/* Encodes made-up music by libvorbis: `vorbis TENTHS`, in tenths of a second. */
#include "sound.h"
#include <stdio.h>
#include <stdlib.h>
#include <vorbis/vorbisenc.h>

enum { SAMPLES = 4410 };

int main(int argc, char **argv)
{
    vorbis_info info;
    vorbis_dsp_state state;
    vorbis_block block;
    ogg_packet packet;
    vorbis_info_init(&info);
    if (argc != 2 || vorbis_encode_init_vbr(&info, 1, 44100, 0.4f))
        return 2;
    vorbis_analysis_init(&state, &info);
    vorbis_block_init(&state, &block);
    long sample = 0, bytes = 0;
    for (int part = 0; part < atoi(argv[1]); part++) {
        float *in = vorbis_analysis_buffer(&state, SAMPLES)[0];
        for (int i = 0; i < SAMPLES; i++)
            in[i] = sound(sample++);
        vorbis_analysis_wrote(&state, SAMPLES);
        while (vorbis_analysis_blockout(&state, &block) == 1) {
            vorbis_analysis(&block, NULL);
            vorbis_bitrate_addblock(&block);
            while (vorbis_bitrate_flushpacket(&state, &packet))
                bytes += packet.bytes;
        }
    }
    printf("vorbis: %ld\n", bytes);
    vorbis_block_clear(&block), vorbis_dsp_clear(&state), vorbis_info_clear(&info);
    return 0;
}
