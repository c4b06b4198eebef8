/* Multiplies matrices, compiled for x86-64-v3 with vectors and FMA, and again by scalar code
 * without them: the products agree. The numbers are small, so both are exact. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N 96

static float a[N][N], b[N][N], product[N][N], scalar[N][N];
static double da[N][N], db[N][N], dproduct[N][N];

static void multiply(void)
{
    for (int i = 0; i < N; i++)
        for (int k = 0; k < N; k++)
            for (int j = 0; j < N; j++) {
                product[i][j] += a[i][k] * b[k][j];
                dproduct[i][j] += da[i][k] * db[k][j];
            }
}

__attribute__((target("arch=x86-64"), optimize("no-tree-vectorize"), noinline)) static void
multiply_by_elements(void)
{
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            float sum = 0;
            for (int k = 0; k < N; k++)
                sum += a[i][k] * b[k][j];
            scalar[i][j] = sum;
        }
}

int main(void)
{
    unsigned seed = 1;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            seed = seed * 1103515245 + 12345;
            da[i][j] = a[i][j] = (float)(seed >> 16 & 31);
            db[i][j] = b[i][j] = (float)(seed >> 24 & 31);
        }
    multiply();
    multiply_by_elements();
    double sum = 0;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            if (product[i][j] != scalar[i][j] || dproduct[i][j] != scalar[i][j]) {
                printf("matrix: FAILED at %d, %d: %f\n", i, j, product[i][j]);
                return 1;
            }
            sum += dproduct[i][j];
        }
    printf("matrix: %.0f\n", sum);
    return 0;
}
