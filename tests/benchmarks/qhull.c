/* Convex hulls of random points in four dimensions by Qhull: `qhull HULLS`. */
#include <libqhull_r/qhull_ra.h>
#include <stdio.h>
#include <stdlib.h>

enum { POINTS = 700, DIMENSIONS = 4 };

int main(int argc, char **argv)
{
    static coordT points[POINTS * DIMENSIONS];
    unsigned state = 1;
    long facets = 0;
    for (int hull = 0; argc == 2 && hull < atoi(argv[1]); hull++) {
        for (int i = 0; i < POINTS * DIMENSIONS; i++) {
            state = state * 1664525 + 1013904223;
            points[i] = (state >> 8) / 16777216.0;
        }
        qhT qhull, *qh = &qhull;
        char command[] = "qhull";
        qh_zero(qh, stderr);
        if (qh_new_qhull(qh, DIMENSIONS, POINTS, points, False, command, NULL, stderr))
            return 1;
        facets += qh->num_facets;
        qh_freeqhull(qh, qh_ALL);
    }
    printf("qhull: %ld\n", facets);
    return argc != 2;
}
