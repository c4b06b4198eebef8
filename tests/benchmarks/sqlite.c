/* Fills, joins, groups and empties tables of SQLite in memory: `sqlite ROUNDS`. */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const ROUND =
    "CREATE TABLE person(id INTEGER PRIMARY KEY, name TEXT, town INT);"
    "CREATE TABLE sale(person INT, day INT, amount INT, note TEXT);"
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 700)"
    " INSERT INTO person SELECT i, 'name ' || (i * 7919 % 700), i * 31 % 40 FROM n;"
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2500)"
    " INSERT INTO sale SELECT i * 611953 % 700 + 1, i * 7 % 365, i * 104729 % 1000, hex(i * i)"
    " FROM n;"
    "CREATE INDEX of_person ON sale(person);"
    "CREATE INDEX by_name ON person(name);"
    "UPDATE sale SET amount = amount + 1 WHERE day % 7 = 3;";
static const char *const QUERIES[] = {
    "SELECT town, count(*), sum(amount) FROM person JOIN sale ON id = person GROUP BY town;",
    "SELECT name, max(amount) FROM person JOIN sale ON id = person WHERE name LIKE '%7%'"
    " GROUP BY name ORDER BY 2 DESC LIMIT 50;",
    "SELECT day, sum(length(note)) FROM sale GROUP BY day ORDER BY 2;",
    "SELECT count(*) FROM sale a JOIN sale b ON a.person = b.person AND a.day < b.day;",
};

static int add(void *sum, int columns, char **values, char **names)
{
    (void)names;
    for (int i = 0; i < columns; i++)
        for (const char *c = values[i] ? values[i] : ""; *c; c++)
            *(unsigned *)sum = *(unsigned *)sum * 31 + (unsigned char)*c;
    return 0;
}

int main(int argc, char **argv)
{
    sqlite3 *database;
    unsigned sum = 0;
    if (argc != 2 || sqlite3_open(":memory:", &database))
        return 2;
    for (int round = 0; round < atoi(argv[1]); round++) {
        if (sqlite3_exec(database, ROUND, NULL, NULL, NULL))
            return fprintf(stderr, "%s\n", sqlite3_errmsg(database)), 1;
        for (size_t query = 0; query < sizeof QUERIES / sizeof *QUERIES; query++)
            if (sqlite3_exec(database, QUERIES[query], add, &sum, NULL))
                return fprintf(stderr, "%s\n", sqlite3_errmsg(database)), 1;
        if (sqlite3_exec(database, "DROP TABLE person; DROP TABLE sale;", NULL, NULL, NULL))
            return 1;
    }
    printf("sqlite: %u\n", sum);
    return sqlite3_close(database) != SQLITE_OK;
}
