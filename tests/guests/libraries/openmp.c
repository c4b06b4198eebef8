/* Loops, sums and tasks on the threads of OpenMP. */
#include <omp.h>
#include <stdio.h>

int main(void)
{
    double sum = 0;
    long count = 0, tasks = 0;
    int squares[1000], threads = 0;
#pragma omp parallel num_threads(4) reduction(+ : sum, count)
    {
#pragma omp single
        threads = omp_get_num_threads();
#pragma omp for schedule(dynamic, 100)
        for (int i = 0; i < 100000; i++) {
            sum += 1.0 / (1 + i);
            count += i % 7;
        }
    }
#pragma omp parallel for num_threads(3)
    for (int i = 0; i < 1000; i++)
        squares[i] = i * i;
#pragma omp parallel
#pragma omp single
    for (int i = 0; i < 10; i++) {
#pragma omp task
        {
#pragma omp atomic
            tasks += squares[i];
        }
    }
    printf("openmp: %d threads, %.6f %ld %ld\n", threads, sum, count, tasks);
    return 0;
}
