/* Compiles generated C by libtcc: `tcc MODULES`. Modules in turn are arithmetic, branches, and
 * structures with loops. */
#include <libtcc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { FUNCTIONS = 300, ROOM = 1 << 20 };

static char source[ROOM];
static size_t length;
static unsigned state = 1;

static unsigned below(unsigned limit)
{
    state = state * 1664525 + 1013904223;
    return (state >> 8) % limit;
}

static void add(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    length += (size_t)vsnprintf(source + length, ROOM - length, format, list);
    va_end(list);
}

static void expression(int depth)
{
    static const char *const operators[] = { "+", "-", "*", "^", "&", "|", "<<" };
    if (!depth || !below(6)) {
        below(2) ? add("%c", "abc"[below(3)]) : add("%u", below(1000));
        return;
    }
    add("(");
    expression(depth - 1);
    add(" %s ", operators[below(6)]);
    expression(depth - 1);
    add(")");
}

static void arithmetic(int number)
{
    add("int f%d(int a, int b, int c) {\n", number);
    for (int line = 0; line < 6; line++) {
        add("    %c = ", "abc"[below(3)]);
        expression(4);
        add(";\n");
    }
    add("    return a + b;\n}\n");
}

static void branches(int number)
{
    add("int f%d(int a, int b, int c) {\n    switch (a & 15) {\n", number);
    for (int value = 0; value < 12; value++)
        add("    case %d: if (b > %u) return c %% %u; b += %u; break;\n", value, below(99),
            1 + below(50), below(9));
    add("    default: while (b-- > 0) c += b; }\n    return b ? c : a;\n}\n");
}

static void structures(int number)
{
    add("struct s%d { int x[%u]; struct s%d *next; double d; };\n", number, 2 + below(9), number);
    add("int f%d(int a, int b, int c) {\n    struct s%d s = { { a, b } }, *p = &s;\n", number, number);
    add("    for (int i = 0; i < c; i++) { p->x[i & 1] += i * %u; p->d = p->d * %u.5 + i; }\n",
        below(99), below(9));
    add("    p->next = p; return p->next->next->x[1] + (int)s.d;\n}\n");
}

int main(int argc, char **argv)
{
    void (*kinds[])(int) = { arithmetic, branches, structures };
    for (int module = 0; argc == 2 && module < atoi(argv[1]); module++) {
        length = 0;
        for (int function = 0; function < FUNCTIONS; function++)
            kinds[module % 3](function);
        TCCState *tcc = tcc_new();
        tcc_set_options(tcc, "-nostdinc -nostdlib");
        tcc_set_output_type(tcc, TCC_OUTPUT_OBJ);
        if (tcc_compile_string(tcc, source) || tcc_output_file(tcc, "module.o"))
            return 1;
        tcc_delete(tcc);
    }
    printf("tcc: %zu\n", length);
    return argc != 2;
}
