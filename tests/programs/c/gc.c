/* Threads that allocate while a collector stops them by signals, by the Boehm collector. */
#define GC_THREADS
#include <gc/gc.h>
#include <pthread.h>
#include <stdio.h>

enum { THREADS = 3, DEPTH = 12 };

struct node {
    struct node *left, *right;
    long value;
};

static struct node *tree(int depth)
{
    struct node *node = GC_MALLOC(sizeof *node);
    node->value = depth;
    if (depth) {
        node->left = tree(depth - 1);
        node->right = tree(depth - 1);
    }
    return node;
}

static long sum(const struct node *node)
{
    return node ? node->value + sum(node->left) + sum(node->right) : 0;
}

static void *work(void *result)
{
    struct node *kept = tree(DEPTH);
    for (int i = 0; i < 12; i++)
        tree(DEPTH - 2);
    *(long *)result = sum(kept);
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    long sums[THREADS], all = 0;
    GC_INIT();
    GC_set_max_heap_size(64 << 20);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, &sums[i]);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        all += sums[i];
    }
    GC_gcollect();
    printf("gc: %ld, collected %d\n", all, GC_get_gc_no() > 2);
    return 0;
}
