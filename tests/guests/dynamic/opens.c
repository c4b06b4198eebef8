/* Loads a library by the path in its argument, calls it in two threads, and fails to load one that
 * does not exist. Prints the same here as under Linux. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

#include "needed.h"

static int (*answer)(double);

static void *in_thread(void *argument)
{
    (void)argument;
    printf("thread: %d\n", answer(0));
    return NULL;
}

int main(int count, char **words)
{
    pthread_t thread;
    printf("needed: %d\n", needed_calls());
    if (count < 2 || dlopen("./nobody.so", RTLD_NOW) != NULL)
        return 1;
    printf("missing: %s\n", dlerror());
    void *plugin = dlopen(words[1], RTLD_LAZY);
    if (plugin == NULL) {
        printf("%s\n", dlerror());
        return 2;
    }
    *(void **)&answer = dlsym(plugin, "answer");
    printf("first: %d\n", answer(0));
    if (pthread_create(&thread, NULL, in_thread, NULL) != 0 || pthread_join(thread, NULL) != 0)
        return 3;
    printf("closed: %d\n", dlclose(plugin));
    return 7;
}
