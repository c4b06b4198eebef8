/* Readers without locks and a writer that waits for them, by the userspace RCU library. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <urcu.h>

enum { READERS = 3, VERSIONS = 60 };

struct pair {
    long first, second;
    struct rcu_head head;
};

static struct pair *shared;
static int done;
static long freed;

static void reclaim(struct rcu_head *head)
{
    free(caa_container_of(head, struct pair, head));
    freed++;
}

static void *read_pairs(void *unused)
{
    size_t torn = 0;
    rcu_register_thread();
    while (!__atomic_load_n(&done, __ATOMIC_ACQUIRE)) {
        rcu_read_lock();
        struct pair *pair = rcu_dereference(shared);
        torn += pair->first != -pair->second;
        rcu_read_unlock();
    }
    rcu_unregister_thread();
    return (void *)(torn + (unused != NULL));
}

int main(void)
{
    pthread_t readers[READERS];
    size_t torn = 0;
    rcu_register_thread();
    shared = calloc(1, sizeof *shared);
    for (int i = 0; i < READERS; i++)
        pthread_create(&readers[i], NULL, read_pairs, NULL);
    for (long version = 1; version <= VERSIONS; version++) {
        struct pair *pair = malloc(sizeof *pair), *old = shared;
        pair->first = version, pair->second = -version;
        rcu_assign_pointer(shared, pair);
        if (version % 2)
            synchronize_rcu(), free(old);
        else
            call_rcu(&old->head, reclaim);
    }
    rcu_barrier();
    __atomic_store_n(&done, 1, __ATOMIC_RELEASE);
    for (int i = 0; i < READERS; i++) {
        void *own;
        pthread_join(readers[i], &own);
        torn += (size_t)own;
    }
    printf("urcu: %zu torn, %ld freed, last %ld\n", torn, freed, shared->first);
    rcu_unregister_thread();
    return 0;
}
