/* BT of the NAS Parallel Benchmarks, from their specification (NASA report RNR-94-007): solves the
 * Navier-Stokes equations by lines of blocks of 5 by 5, on a grid of 12³ points for 60 steps, the
 * size of class S. Fails if its residuals and errors are not the specification's.
 *
 * bt RUNS: each of the 60 steps. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define N 12
#define POINTS (N * N * N)
#define DT 0.01
/* Constants of the equations: c1 to c5. */
#define C1 1.4
#define C2 0.4
#define C3C4 (0.1 * 1.0)
#define C1C5 (1.4 * 1.4)
#define C1345 (C1C5 * C3C4)
/* The spacing, and factors of first and second differences. */
#define STEP (1.0 / (N - 1))
#define FIRST (1.0 / (2 * STEP))
#define SECOND (1.0 / (STEP * STEP))
#define VISCOUS (C3C4 * SECOND)
/* Dissipation: of second order by direction, of fourth order. */
static const double second[3] = {0.75, 0.75, 1.0};
#define FOURTH 0.25

typedef double vector[5];
typedef double block[5][5];

static vector u[POINTS], rhs[POINTS], forcing[POINTS];
/* By point: of mass, velocities squared, and their half. */
static double inverse[POINTS], kinetic[POINTS];

/* Distances of neighbours in the three directions. */
static const int stride[3] = {1, N, N * N};

static const double exact_terms[5][13] = {
    {2.0, 0.0, 0.0, 4.0, 5.0, 3.0, 0.5, 0.02, 0.01, 0.03, 0.5, 0.4, 0.3},
    {1.0, 0.0, 0.0, 0.0, 1.0, 2.0, 3.0, 0.01, 0.03, 0.02, 0.4, 0.3, 0.5},
    {2.0, 2.0, 0.0, 0.0, 0.0, 2.0, 3.0, 0.04, 0.03, 0.05, 0.3, 0.5, 0.4},
    {2.0, 2.0, 0.0, 0.0, 0.0, 2.0, 3.0, 0.03, 0.05, 0.04, 0.2, 0.1, 0.3},
    {5.0, 4.0, 3.0, 2.0, 0.1, 0.4, 0.3, 0.05, 0.04, 0.03, 0.1, 0.3, 0.2},
};
/* Of class S: residuals, errors. */
static const double expected[2][5] = {
    {1.7034283709541311e-01, 1.2975252070034097e-02, 3.2527926989486055e-02,
     2.6436421275166801e-02, 1.9211784131744430e-01},
    {4.9976913345811579e-04, 4.5195666782961927e-05, 7.3973765172921357e-05,
     7.3821238632439731e-05, 8.9269630987491446e-04},
};

/* Whether a point is on no side of the grid. */
static int is_inner(int point)
{
    int i = point % N, j = point / N % N, k = point / N / N;
    return i > 0 && i < N - 1 && j > 0 && j < N - 1 && k > 0 && k < N - 1;
}

static void exact_at(const double at[3], vector value)
{
    for (int m = 0; m < 5; m++) {
        const double *c = exact_terms[m];
        value[m] = c[0];
        for (int d = 0; d < 3; d++) {
            double x = at[d];
            value[m] += x * (c[1 + d] + x * (c[4 + d] + x * (c[7 + d] + x * c[10 + d])));
        }
    }
}

static void place_of(int point, double at[3])
{
    at[0] = STEP * (point % N);
    at[1] = STEP * (point / N % N);
    at[2] = STEP * (point / N / N);
}

/* The first values: between those of the six sides. */
static void first_values(void)
{
    for (int point = 0; point < POINTS; point++) {
        double at[3];
        vector between[3];
        place_of(point, at);
        if (!is_inner(point)) {
            exact_at(at, u[point]);
            continue;
        }
        for (int d = 0; d < 3; d++) {
            vector low, high;
            double side[3] = {at[0], at[1], at[2]};
            side[d] = 0;
            exact_at(side, low);
            side[d] = 1;
            exact_at(side, high);
            for (int m = 0; m < 5; m++)
                between[d][m] = at[d] * high[m] + (1 - at[d]) * low[m];
        }
        for (int m = 0; m < 5; m++) {
            double x = between[0][m], y = between[1][m], z = between[2][m];
            u[point][m] = x + y + z - x * y - x * z - y * z + x * y * z;
        }
    }
}

/* Adds the fourth differences of one direction, one-sided near its ends. */
static void dissipate(vector *to, int point, int place, int s)
{
    for (int m = 0; m < 5; m++) {
        double here = u[point][m], low = u[point - s][m], high = u[point + s][m];
        double sum = -4 * (low + high);
        if (place == 1)
            sum = -4 * high + 5 * here + u[point + 2 * s][m];
        else if (place == N - 2)
            sum = -4 * low + 5 * here + u[point - 2 * s][m];
        else {
            sum += 6 * here;
            sum += place > 2 ? u[point - 2 * s][m] : 0;
            sum += place < N - 3 ? u[point + 2 * s][m] : 0;
        }
        to[point][m] -= FOURTH * sum;
    }
}

/* Adds the differences of one direction at one point. */
static void difference(vector *to, int point, int d)
{
    int s = stride[d], low = point - s, high = point + s, along = 1 + d;
    double fast_low = u[low][along] * inverse[low], fast_high = u[high][along] * inverse[high];
    double fast = u[point][along] * inverse[point];
    double *sum = to[point];
    for (int m = 0; m < 5; m++)
        sum[m] += second[d] * SECOND * (u[high][m] - 2 * u[point][m] + u[low][m]);
    sum[0] -= FIRST * (u[high][along] - u[low][along]);
    for (int m = 1; m < 4; m++) {
        double v_high = u[high][m] * inverse[high], v_low = u[low][m] * inverse[low];
        double v = u[point][m] * inverse[point];
        sum[m] += (m == along ? 4.0 / 3 : 1) * VISCOUS * (v_high - 2 * v + v_low);
        sum[m] -= FIRST * (u[high][m] * fast_high - u[low][m] * fast_low);
    }
    double mass_high = kinetic[high] / inverse[high], mass_low = kinetic[low] / inverse[low];
    sum[along] -= FIRST * C2 * (u[high][4] - mass_high - u[low][4] + mass_low);
    sum[4] += VISCOUS * (1 - C1C5) * (kinetic[high] - 2 * kinetic[point] + kinetic[low]);
    sum[4] += VISCOUS / 6 * (fast_high * fast_high - 2 * fast * fast + fast_low * fast_low);
    sum[4] += VISCOUS * C1C5
              * (u[high][4] * inverse[high] - 2 * u[point][4] * inverse[point]
                 + u[low][4] * inverse[low]);
    sum[4] -= FIRST * ((C1 * u[high][4] - C2 * mass_high) * fast_high
                       - (C1 * u[low][4] - C2 * mass_low) * fast_low);
}

/* Adds what the equations give for the values to `to`, at inner points. */
static void apply(vector *to)
{
    for (int point = 0; point < POINTS; point++) {
        const double *of = u[point];
        inverse[point] = 1 / of[0];
        kinetic[point] = 0.5 * (of[1] * of[1] + of[2] * of[2] + of[3] * of[3]) * inverse[point]
                         * inverse[point];
    }
    for (int point = 0; point < POINTS; point++) {
        if (!is_inner(point))
            continue;
        for (int d = 0; d < 3; d++) {
            difference(to, point, d);
            dissipate(to, point, point / stride[d] % N, stride[d]);
        }
    }
}

/* What makes the exact values a solution. */
static void find_forcing(void)
{
    for (int point = 0; point < POINTS; point++) {
        double at[3];
        place_of(point, at);
        exact_at(at, u[point]);
    }
    apply(forcing);
    for (int point = 0; point < POINTS; point++)
        for (int m = 0; m < 5; m++)
            forcing[point][m] = -forcing[point][m];
}

static void find_rhs(void)
{
    for (int point = 0; point < POINTS; point++)
        for (int m = 0; m < 5; m++)
            rhs[point][m] = forcing[point][m];
    apply(rhs);
    for (int point = 0; point < POINTS; point++)
        for (int m = 0; m < 5; m++)
            rhs[point][m] *= DT;
}

/* The derivatives of the flow and of its viscous part along direction `d` at a point. */
static void jacobians(int point, int d, block flow, block viscous)
{
    int along = 1 + d;
    const double *of = u[point];
    double t = inverse[point], t2 = t * t, t3 = t2 * t, q = kinetic[point];
    for (int m = 0; m < 5; m++)
        for (int n = 0; n < 5; n++)
            flow[m][n] = viscous[m][n] = 0;
    flow[0][along] = 1;
    for (int m = 1; m < 4; m++) {
        double share = m == along ? 4.0 / 3 : 1;
        flow[m][0] = -of[m] * of[along] * t2;
        flow[m][along] = of[m] * t;
        flow[m][m] += of[along] * t;
        viscous[m][0] = -share * C3C4 * t2 * of[m];
        viscous[m][m] = share * C3C4 * t;
        flow[4][m] = -C2 * of[m] * of[along] * t2;
        viscous[4][0] -= (share * C3C4 - C1345) * t3 * of[m] * of[m];
        viscous[4][m] = (share * C3C4 - C1345) * t2 * of[m];
    }
    flow[along][0] += C2 * q;
    for (int m = 1; m < 4; m++)
        flow[along][m] -= C2 * of[m] * t;
    flow[along][4] = C2;
    flow[4][0] = (2 * C2 * q - C1 * of[4] * t) * of[along] * t;
    flow[4][along] += C1 * of[4] * t - C2 * q;
    flow[4][4] = C1 * of[along] * t;
    viscous[4][0] -= C1345 * t2 * of[4];
    viscous[4][4] = C1345 * t;
}

/* Divides the rows of `right` and of `value` by `by`, which is lost. */
static void eliminate(block by, block right, vector value)
{
    for (int p = 0; p < 5; p++) {
        double pivot = 1 / by[p][p];
        for (int n = p + 1; n < 5; n++)
            by[p][n] *= pivot;
        for (int n = 0; n < 5; n++)
            right[p][n] *= pivot;
        value[p] *= pivot;
        for (int m = 0; m < 5; m++) {
            if (m == p)
                continue;
            double factor = by[m][p];
            for (int n = p + 1; n < 5; n++)
                by[m][n] -= factor * by[p][n];
            for (int n = 0; n < 5; n++)
                right[m][n] -= factor * right[p][n];
            value[m] -= factor * value[p];
        }
    }
}

/* Solves the line of points from `first` on in direction `d`. */
static void solve_line(int first, int d)
{
    static block flow[N], viscous[N], upper[N];
    int s = stride[d];
    for (int i = 0; i < N; i++)
        jacobians(first + i * s, d, flow[i], viscous[i]);
    for (int i = 0; i < N; i++) {
        block lower, diagonal;
        double t1 = DT * SECOND, t2 = DT * FIRST;
        int is_end = i == 0 || i == N - 1;
        for (int m = 0; m < 5; m++)
            for (int n = 0; n < 5; n++) {
                double self = m == n, more = self * second[d];
                diagonal[m][n] = self;
                lower[m][n] = upper[i][m][n] = 0;
                if (is_end)
                    continue;
                diagonal[m][n] += 2 * t1 * (viscous[i][m][n] + more);
                lower[m][n] = -t2 * flow[i - 1][m][n] - t1 * (viscous[i - 1][m][n] + more);
                upper[i][m][n] = t2 * flow[i + 1][m][n] - t1 * (viscous[i + 1][m][n] + more);
            }
        double *value = rhs[first + i * s];
        if (i > 0) {
            const double *before = rhs[first + (i - 1) * s];
            for (int m = 0; m < 5; m++)
                for (int n = 0; n < 5; n++) {
                    value[m] -= lower[m][n] * before[n];
                    for (int p = 0; p < 5; p++)
                        diagonal[m][p] -= lower[m][n] * upper[i - 1][n][p];
                }
        }
        eliminate(diagonal, upper[i], value);
    }
    for (int i = N - 2; i >= 0; i--)
        for (int m = 0; m < 5; m++)
            for (int n = 0; n < 5; n++)
                rhs[first + i * s][m] -= upper[i][m][n] * rhs[first + (i + 1) * s][n];
}

static void step(void)
{
    find_rhs();
    for (int d = 0; d < 3; d++)
        for (int j = 1; j < N - 1; j++)
            for (int k = 1; k < N - 1; k++)
                solve_line(stride[(d + 1) % 3] * j + stride[(d + 2) % 3] * k, d);
    for (int point = 0; point < POINTS; point++)
        for (int m = 0; m < 5; m++)
            u[point][m] += is_inner(point) ? rhs[point][m] : 0;
}

/* Roots of mean squares: of residuals, and of the errors of the values. */
static void norms(vector result[2])
{
    for (int m = 0; m < 5; m++)
        result[0][m] = result[1][m] = 0;
    find_rhs();
    for (int point = 0; point < POINTS; point++) {
        double at[3];
        vector exact;
        place_of(point, at);
        exact_at(at, exact);
        for (int m = 0; m < 5; m++) {
            double residual = is_inner(point) ? rhs[point][m] / DT : 0;
            double error = u[point][m] - exact[m];
            result[0][m] += residual * residual;
            result[1][m] += error * error;
        }
    }
    for (int m = 0; m < 10; m++)
        result[m / 5][m % 5] = sqrt(result[m / 5][m % 5] / ((N - 2) * (N - 2) * (N - 2)));
}

/* The steps of class S. Returns whether a result is wrong. */
static int run(void)
{
    static const char *const names[2] = {"residual", "error"};
    vector result[2];
    int wrong = 0;
    first_values();
    for (int i = 0; i < 60; i++)
        step();
    norms(result);
    for (int m = 0; m < 10; m++) {
        double value = result[m / 5][m % 5];
        printf("%s %d: %.13e\n", names[m / 5], m % 5, value);
        wrong |= !(fabs(value / expected[m / 5][m % 5] - 1) < 1e-8);
    }
    return wrong;
}

int main(int argc, char **argv)
{
    int runs = argc > 1 ? atoi(argv[1]) : 1, wrong = 0;
    find_forcing();
    for (int i = 0; i < runs; i++)
        wrong |= run();
    puts(wrong ? "bt: WRONG residuals or errors" : "bt: verified");
    return wrong;
}
