/* Digits of pi by GMP, by Machin's formula: `pi DIGITS`. */
#include <gmp.h>
#include <stdio.h>
#include <stdlib.h>

/* Adds factor * unit * arctan(1 / x). */
static void arctan(mpz_t sum, const mpz_t unit, unsigned x, long factor)
{
    mpz_t power, term;
    mpz_inits(power, term, NULL);
    mpz_tdiv_q_ui(power, unit, x);
    for (unsigned n = 1; mpz_sgn(power); n += 2) {
        mpz_tdiv_q_ui(term, power, n);
        mpz_mul_si(term, term, n % 4 == 1 ? factor : -factor);
        mpz_add(sum, sum, term);
        mpz_tdiv_q_ui(power, power, x * x);
    }
    mpz_clears(power, term, NULL);
}

int main(int argc, char **argv)
{
    unsigned digits = argc == 2 ? atoi(argv[1]) : 100;
    mpz_t unit, pi;
    mpz_inits(unit, pi, NULL);
    mpz_ui_pow_ui(unit, 10, digits + 10);
    arctan(pi, unit, 5, 16);
    arctan(pi, unit, 239, -4);
    mpz_ui_pow_ui(unit, 10, 10);
    mpz_tdiv_q(pi, pi, unit);
    gmp_printf("%Zd\n%Zd\n", pi, unit);
    mpz_clears(unit, pi, NULL);
    return 0;
}
