/* Calls of functions whose types are known only at run time, and closures, by libffi. */
#include <ffi.h>
#include <stdio.h>
#include <stdlib.h>

static double mix(int a, double b, long c)
{
    return a * b + c;
}

static void compare(ffi_cif *cif, void *result, void **arguments, void *calls)
{
    int a = **(int **)arguments[0], b = **(int **)arguments[1];
    (void)cif;
    *(ffi_sarg *)result = (a > b) - (a < b);
    ++*(int *)calls;
}

int main(void)
{
    ffi_cif cif, order;
    ffi_type *types[] = { &ffi_type_sint, &ffi_type_double, &ffi_type_slong };
    ffi_type *pointers[] = { &ffi_type_pointer, &ffi_type_pointer };
    int a = 3, calls = 0, numbers[100];
    double b = 1.5, result;
    long c = 4;
    void *values[] = { &a, &b, &c }, *code;
    ffi_prep_cif(&cif, FFI_DEFAULT_ABI, 3, &ffi_type_double, types);
    ffi_call(&cif, FFI_FN(mix), &result, values);
    ffi_closure *closure = ffi_closure_alloc(sizeof *closure, &code);
    ffi_prep_cif(&order, FFI_DEFAULT_ABI, 2, &ffi_type_sint, pointers);
    if (!closure || ffi_prep_closure_loc(closure, &order, compare, &calls, code) != FFI_OK)
        return puts("ffi: no closure"), 1;
    for (int i = 0; i < 100; i++)
        numbers[i] = i * 37 % 100;
    qsort(numbers, 100, sizeof *numbers, (int (*)(const void *, const void *))code);
    printf("ffi: %.2f, %d to %d, %d\n", result, numbers[0], numbers[99], calls > 99);
    ffi_closure_free(closure);
    return 0;
}
