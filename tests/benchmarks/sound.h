/* A made-up piece of music: chords of decaying tones, and noise. */
#include <math.h>

static unsigned noise_state = 1;

static float sound(long sample)
{
    double seconds = sample / 44100.0, beat = fmod(seconds, 0.5), sum = 0;
    int chord = (int)(seconds * 2) % 7;
    for (int tone = 0; tone < 4; tone++)
        sum += sin(6.2831853 * 110 * (chord + 2 * tone + 3) * seconds) * exp(-beat * (tone + 2));
    noise_state = noise_state * 1664525 + 1013904223;
    double noise = (noise_state >> 8) / 8388608.0 - 1;
    return (float)(0.2 * sum + (chord == 3 ? 0.2 : 0.01) * noise);
}
