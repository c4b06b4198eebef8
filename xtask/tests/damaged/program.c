/* The program in `program`, whose file the test damages:
 * gcc -static -nostdlib -no-pie -O1 -g1 -fno-stack-protector -fcf-protection=none \
 *     -fno-omit-frame-pointer -Wl,-z,max-page-size=512,-z,noseparate-code,--build-id=sha1 \
 *     -o program program.c */

static volatile long sum;

static inline void add(long n)
{
	sum += n;
}

__attribute__((noinline)) void work(long n)
{
	for (long i = 0; i < n; i++)
		add(i);
}

__attribute__((noinline)) void outer(long n)
{
	work(n);
	add(1);
}

void _start(void)
{
	outer(100);
	for (;;)
		__asm__ volatile("syscall" : : "a"(60), "D"(0) : "rcx", "r11", "memory");
}
