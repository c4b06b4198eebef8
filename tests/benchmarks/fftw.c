/* Solves the heat equation on a periodic grid by FFTW, as NAS FT does: `fftw STEPS`. */
#include <fftw3.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 48, ALL = N * N * N };

static double square(int index)
{
    int frequency = index > N / 2 ? index - N : index;
    return frequency * frequency;
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    fftw_complex *grid = fftw_alloc_complex(ALL), *waves = fftw_alloc_complex(ALL);
    fftw_plan there = fftw_plan_dft_3d(N, N, N, grid, waves, FFTW_FORWARD, FFTW_ESTIMATE);
    fftw_plan back = fftw_plan_dft_3d(N, N, N, waves, grid, FFTW_BACKWARD, FFTW_ESTIMATE);
    for (int i = 0; i < ALL; i++)
        grid[i][0] = sin(i * 0.37) + (i % 61 == 0), grid[i][1] = 0;
    for (int step = 0; step < atoi(argv[1]); step++) {
        fftw_execute(there);
        for (int x = 0; x < N; x++)
            for (int y = 0; y < N; y++)
                for (int z = 0; z < N; z++) {
                    double k = square(x) + square(y) + square(z);
                    double factor = exp(-1e-4 * k) / ALL;
                    fftw_complex *wave = &waves[(x * N + y) * N + z];
                    (*wave)[0] *= factor, (*wave)[1] *= factor;
                }
        fftw_execute(back);
    }
    double sum = 0;
    for (int i = 0; i < ALL; i += 97)
        sum += grid[i][0];
    printf("fftw: %.9f\n", sum);
    return 0;
}
