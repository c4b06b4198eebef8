/* A database that is a shared mapping of a file, written and read by several threads, by LMDB. */
#include <lmdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 3, ROWS = 300 };
static MDB_env *environment;
static MDB_dbi table;

static void must(int status)
{
    if (status) {
        fprintf(stderr, "lmdb: %s\n", mdb_strerror(status));
        exit(1);
    }
}

static void *write_rows(void *number)
{
    for (int i = 0; i < ROWS; i += 50) {
        MDB_txn *transaction;
        must(mdb_txn_begin(environment, NULL, 0, &transaction));
        for (int j = i; j < i + 50; j++) {
            char key[20], text[40];
            snprintf(key, sizeof key, "%d-%05d", (int)(size_t)number, j * 7919 % 10007);
            snprintf(text, sizeof text, "row %d of thread %d", j, (int)(size_t)number);
            MDB_val name = { strlen(key), key }, value = { strlen(text), text };
            must(mdb_put(transaction, table, &name, &value, 0));
        }
        must(mdb_txn_commit(transaction));
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    MDB_txn *transaction;
    MDB_cursor *cursor;
    MDB_val name, value;
    MDB_stat statistics;
    int rows = 0;
    must(mdb_env_create(&environment));
    must(mdb_env_set_mapsize(environment, 1 << 22));
    must(mdb_env_open(environment, "test.lmdb", MDB_NOSUBDIR | MDB_WRITEMAP, 0644));
    must(mdb_txn_begin(environment, NULL, 0, &transaction));
    must(mdb_dbi_open(transaction, NULL, 0, &table));
    must(mdb_txn_commit(transaction));
    for (size_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, write_rows, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    must(mdb_txn_begin(environment, NULL, MDB_RDONLY, &transaction));
    must(mdb_cursor_open(transaction, table, &cursor));
    while (mdb_cursor_get(cursor, &name, &value, rows ? MDB_NEXT : MDB_FIRST) == 0)
        if (rows++ % 200 == 0)
            printf("%.*s: %.*s\n", (int)name.mv_size, (char *)name.mv_data, (int)value.mv_size,
                   (char *)value.mv_data);
    must(mdb_env_stat(environment, &statistics));
    printf("lmdb: %d rows, %zu, depth %u\n", rows, statistics.ms_entries, statistics.ms_depth);
    mdb_txn_abort(transaction);
    must(mdb_env_sync(environment, 1));
    mdb_env_close(environment);
    return 0;
}
