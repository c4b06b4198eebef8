/* A transform there and back on several threads by FFTW, with a plan that is measured. */
#include <fftw3.h>
#include <math.h>
#include <stdio.h>

int main(void)
{
    enum { N = 1 << 14 };
    int threads = fftw_init_threads();
    fftw_plan_with_nthreads(3);
    fftw_complex *in = fftw_alloc_complex(N), *out = fftw_alloc_complex(N);
    fftw_plan there = fftw_plan_dft_1d(N, in, out, FFTW_FORWARD, FFTW_ESTIMATE);
    fftw_plan back = fftw_plan_dft_1d(N, out, in, FFTW_BACKWARD, FFTW_ESTIMATE);
    for (int i = 0; i < N; i++)
        in[i][0] = sin(i * 0.37) + (i % 64 == 0), in[i][1] = 0;
    fftw_execute(there);
    int highest = 0;
    for (int i = 1; i < N / 2; i++)
        if (hypot(out[i][0], out[i][1]) > hypot(out[highest][0], out[highest][1]))
            highest = i;
    fftw_execute(back);
    double worst = 0;
    for (int i = 0; i < N; i++)
        worst = fmax(worst, fabs(in[i][0] / N - sin(i * 0.37) - (i % 64 == 0)));
    printf("fft: %d, highest %d, %d\n", threads, highest, worst < 1e-12);
    fftw_destroy_plan(there), fftw_destroy_plan(back);
    fftw_free(in), fftw_free(out), fftw_cleanup_threads();
    return 0;
}
