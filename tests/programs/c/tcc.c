/* Compiles C by tcc: `tcc SOURCE OBJECT` writes an object; `tcc SOURCE` runs it in memory. */
#include <libtcc.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    TCCState *state = tcc_new();
    tcc_set_options(state, "-nostdinc -nostdlib");
    tcc_set_output_type(state, argc > 2 ? TCC_OUTPUT_OBJ : TCC_OUTPUT_MEMORY);
    if (tcc_add_file(state, argv[1]))
        return 1;
    if (argc > 2)
        return tcc_output_file(state, argv[2]) != 0;
    tcc_add_symbol(state, "printf", printf);
    tcc_add_symbol(state, "memset", memset);
    if (tcc_relocate(state, TCC_RELOCATE_AUTO))
        return 1;
    int (*start)(int) = (int (*)(int))tcc_get_symbol(state, "start");
    int result = start ? start(20) : 1;
    tcc_delete(state);
    return result;
}
