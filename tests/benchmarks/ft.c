/* FT of the NAS Parallel Benchmarks, from their specification (NASA report RNR-94-007): solves a
 * heat equation on a periodic grid of 64³ points by Fourier transforms, in 6 steps, the size of
 * class S. Prints the checksum of each step, and fails if one is not the specification's.
 *
 * ft RUNS: each of the 6 steps. */
#include <complex.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define N 64
#define POINTS (N * N * N)
/* Lines that are transformed side by side. */
#define LINES 16
#define ALPHA 1e-6
#define PI 3.141592653589793238

/* Real and imaginary parts: by place in the line, by line. */
struct block {
    double re[N][LINES], im[N][LINES];
};

static double _Complex start[POINTS], spectrum[POINTS], field[POINTS];
static double damping[POINTS];
static double roots_re[N], roots_im[N];

/* The checksums of class S. */
static const double expected[][2] = {
    {5.546087004964e+02, 4.845363331978e+02}, {5.546385409190e+02, 4.865304269511e+02},
    {5.546148406171e+02, 4.883910722337e+02}, {5.545423607415e+02, 4.901273169046e+02},
    {5.544255039624e+02, 4.917475857993e+02}, {5.542683411903e+02, 4.932597244941e+02},
};

/* The numbers of the specification: x = 5^13 x mod 2^46. */
static double next_random(uint64_t *x)
{
    *x = (*x * 1220703125) & (((uint64_t)1 << 46) - 1);
    return ldexp((double)*x, -46);
}

/* One pass of the transform: `half` butterflies of `width` neighbours. */
static void pass(const struct block *restrict from, struct block *restrict to, int half, int width,
                 double sign)
{
    for (int group = 0; group < half; group++) {
        double re = roots_re[group * width], im = sign * roots_im[group * width];
        for (int place = 0; place < width; place++) {
            int low = group * width + place, high = low + N / 2;
            int even = 2 * group * width + place, odd = even + width;
            for (int line = 0; line < LINES; line++) {
                double a = from->re[low][line], b = from->im[low][line];
                double c = from->re[high][line], d = from->im[high][line];
                to->re[even][line] = a + c;
                to->im[even][line] = b + d;
                to->re[odd][line] = re * (a - c) - im * (b - d);
                to->im[odd][line] = re * (b - d) + im * (a - c);
            }
        }
    }
}

/* Transforms all lines of one direction: `step` from place to place, of `data`. */
static void transform_lines(double _Complex *data, int step, double sign)
{
    static struct block one, other;
    for (int first = 0; first < POINTS / N; first += LINES) {
        int at[LINES];
        for (int line = 0; line < LINES; line++) {
            int index = first + line;
            at[line] = index / step * step * N + index % step;
        }
        for (int place = 0; place < N; place++)
            for (int line = 0; line < LINES; line++) {
                double _Complex value = data[at[line] + place * step];
                one.re[place][line] = creal(value);
                one.im[place][line] = cimag(value);
            }
        for (int width = 1; width < N; width *= 4) {
            pass(&one, &other, N / 2 / width, width, sign);
            pass(&other, &one, N / 4 / width, 2 * width, sign);
        }
        for (int place = 0; place < N; place++)
            for (int line = 0; line < LINES; line++)
                data[at[line] + place * step] = one.re[place][line] + one.im[place][line] * I;
    }
}

static void transform(double _Complex *data, double sign)
{
    for (int step = 1; step < POINTS; step *= N)
        transform_lines(data, step, sign);
}

/* The square of a wave number. */
static int square(int index)
{
    int wave = index < N / 2 ? index : index - N;
    return wave * wave;
}

static void prepare(void)
{
    uint64_t x = 314159265;
    for (int i = 0; i < N; i++) {
        roots_re[i] = cos(2 * PI * i / N);
        roots_im[i] = sin(2 * PI * i / N);
    }
    for (int i = 0; i < POINTS; i++) {
        double re = next_random(&x);
        start[i] = re + next_random(&x) * I;
        int waves = square(i % N) + square(i / N % N) + square(i / N / N);
        damping[i] = exp(-4 * ALPHA * PI * PI * waves);
    }
}

static double _Complex checksum(void)
{
    double _Complex sum = 0;
    for (int j = 1; j <= 1024; j++)
        sum += field[j % N + N * (3 * j % N) + N * N * (5 * j % N)];
    return sum / POINTS;
}

/* The steps of class S. Returns whether a checksum is wrong. */
static int run(void)
{
    int wrong = 0;
    for (int i = 0; i < POINTS; i++)
        spectrum[i] = start[i];
    transform(spectrum, -1);
    for (int step = 0; step < 6; step++) {
        for (int i = 0; i < POINTS; i++)
            field[i] = spectrum[i] *= damping[i];
        transform(field, 1);
        double _Complex sum = checksum();
        wrong |= !(fabs(creal(sum) / expected[step][0] - 1) < 1e-11);
        wrong |= !(fabs(cimag(sum) / expected[step][1] - 1) < 1e-11);
        printf("step %d: checksum %.12e %.12e\n", step + 1, creal(sum), cimag(sum));
    }
    return wrong;
}

int main(int argc, char **argv)
{
    int runs = argc > 1 ? atoi(argv[1]) : 1, wrong = 0;
    prepare();
    for (int i = 0; i < runs; i++)
        wrong |= run();
    puts(wrong ? "ft: WRONG checksums" : "ft: verified");
    return wrong;
}
