/* Runs the SQL of a file: `sqlite DATABASE SCRIPT`. A line `-- other` continues on a second
 * connection to the same database, `-- first` on the first one again. */
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

static int print(void *unused, int columns, char **values, char **names)
{
    (void)unused, (void)names;
    for (int i = 0; i < columns; i++)
        printf("%s%s", i ? "|" : "", values[i] ? values[i] : "NULL");
    putchar('\n');
    return 0;
}

int main(int argc, char **argv)
{
    sqlite3 *connections[2], *now;
    char line[1000], statement[10000] = "";
    FILE *script = argc == 3 ? fopen(argv[2], "r") : NULL;
    if (!script)
        return 2;
    for (int i = 0; i < 2; i++)
        if (sqlite3_open(argv[1], &connections[i]) != SQLITE_OK)
            return fprintf(stderr, "%s\n", sqlite3_errmsg(connections[i])), 1;
    now = connections[0];
    while (fgets(line, sizeof line, script)) {
        if (!strcmp(line, "-- first\n") || !strcmp(line, "-- other\n")) {
            now = connections[line[3] == 'o'];
            continue;
        }
        strcat(statement, line);
        if (!sqlite3_complete(statement))
            continue;
        if (sqlite3_exec(now, statement, print, NULL, NULL) != SQLITE_OK)
            printf("error: %s\n", sqlite3_errmsg(now));
        *statement = 0;
    }
    return sqlite3_close(connections[1]) != SQLITE_OK || sqlite3_close(connections[0]) != SQLITE_OK;
}
