/* Arithmetic of known number: N times a scalar addition, a multiplication of two doubles and an FMA
 * of four, which makes 1, 2 and 8 operations. `flops N` */
#include <stdlib.h>

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : 1;
    for (long i = 0; i < rounds; i++)
        __asm__ volatile("addsd %%xmm1, %%xmm0\n"
                         "mulpd %%xmm1, %%xmm2\n"
                         "vfmadd231pd %%ymm3, %%ymm4, %%ymm5\n"
                         : : : "xmm0", "xmm2", "xmm5");
    return 0;
}
