/* Eigenvalues, linear equations and the motion of bodies by the GNU Scientific Library:
 * `gsl ROUNDS`. */
#include <gsl/gsl_eigen.h>
#include <gsl/gsl_errno.h>
#include <gsl/gsl_linalg.h>
#include <gsl/gsl_odeiv2.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { SIZE = 60, EQUATIONS = 200, BODIES = 12 };

static double eigenvalues(int round)
{
    gsl_matrix *matrix = gsl_matrix_alloc(SIZE, SIZE), *vectors = gsl_matrix_alloc(SIZE, SIZE);
    gsl_vector *values = gsl_vector_alloc(SIZE);
    gsl_eigen_symmv_workspace *work = gsl_eigen_symmv_alloc(SIZE);
    for (int i = 0; i < SIZE; i++)
        for (int j = 0; j < SIZE; j++)
            gsl_matrix_set(matrix, i, j, cos((i + 1) * (j + 1) + round) / (1 + abs(i - j)));
    gsl_eigen_symmv(matrix, values, vectors, work);
    double least = gsl_vector_min(values);
    gsl_eigen_symmv_free(work), gsl_vector_free(values);
    gsl_matrix_free(matrix), gsl_matrix_free(vectors);
    return least;
}

static double equations(int round)
{
    gsl_matrix *matrix = gsl_matrix_alloc(EQUATIONS, EQUATIONS);
    gsl_vector *right = gsl_vector_alloc(EQUATIONS), *x = gsl_vector_alloc(EQUATIONS);
    gsl_permutation *order = gsl_permutation_alloc(EQUATIONS);
    int sign;
    for (int i = 0; i < EQUATIONS; i++) {
        for (int j = 0; j < EQUATIONS; j++)
            gsl_matrix_set(matrix, i, j, (i * 31 + j * 17 + round) % 101 - 50 + 200 * (i == j));
        gsl_vector_set(right, i, i % 7);
    }
    gsl_linalg_LU_decomp(matrix, order, &sign);
    gsl_linalg_LU_solve(matrix, order, right, x);
    double first = gsl_vector_get(x, 0);
    gsl_permutation_free(order), gsl_vector_free(right), gsl_vector_free(x);
    gsl_matrix_free(matrix);
    return first;
}

static int attract(double time, const double y[], double change[], void *none)
{
    (void)time, (void)none;
    for (int i = 0; i < BODIES; i++) {
        double *force = change + 6 * i + 3;
        force[0] = force[1] = force[2] = 0;
        for (int k = 0; k < 3; k++)
            change[6 * i + k] = y[6 * i + 3 + k];
        for (int j = 0; j < BODIES; j++) {
            double dx = y[6 * j] - y[6 * i], dy = y[6 * j + 1] - y[6 * i + 1];
            double dz = y[6 * j + 2] - y[6 * i + 2], square = dx * dx + dy * dy + dz * dz + 0.01;
            double by = 1 / (square * sqrt(square));
            force[0] += dx * by, force[1] += dy * by, force[2] += dz * by;
        }
    }
    return GSL_SUCCESS;
}

static double motion(int round)
{
    double y[6 * BODIES], time = 0;
    for (int i = 0; i < 6 * BODIES; i++)
        y[i] = i % 6 < 3 ? sin(i * 2.3 + round) : 0;
    gsl_odeiv2_system system = { attract, NULL, 6 * BODIES, NULL };
    gsl_odeiv2_driver *driver =
        gsl_odeiv2_driver_alloc_y_new(&system, gsl_odeiv2_step_rk8pd, 1e-3, 1e-7, 0);
    gsl_odeiv2_driver_apply(driver, &time, 0.4, y);
    gsl_odeiv2_driver_free(driver);
    return y[0];
}

int main(int argc, char **argv)
{
    double sum = 0;
    for (int round = 0; argc == 2 && round < atoi(argv[1]); round++)
        sum += eigenvalues(round) + equations(round) + motion(round);
    printf("gsl: %.6f\n", sum);
    return argc != 2;
}
