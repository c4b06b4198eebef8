.globl f
f: lea 1(%rdi,%rdi,2),%eax
 ret
