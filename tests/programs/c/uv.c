/* An event loop with timers, work on threads, a pipe, files and a signal, by libuv. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <uv.h>

static uv_loop_t *loop;
static uv_timer_t timer;
static uv_signal_t handler;
static uv_pipe_t ends[2];
static uv_async_t wake;
static uv_work_t works[4];
static int ticks, worked, woken;
static char room[64];

static void tick(uv_timer_t *it)
{
    if (++ticks == 3) {
        uv_timer_stop(it);
        raise(SIGUSR1);
    }
}

static void compute(uv_work_t *work)
{
    size_t sum = 0;
    for (size_t i = 0; i < 20000; i++)
        sum += i * (size_t)work->data % 7;
    work->data = (void *)sum;
    uv_async_send(&wake);
}

static void computed(uv_work_t *work, int status)
{
    worked += status == 0 && work->data != NULL;
}

static void awake(uv_async_t *it)
{
    woken = 1;
    if (worked == 4)
        uv_close((uv_handle_t *)it, NULL);
    else
        uv_async_send(it);
}

static void signalled(uv_signal_t *it, int number)
{
    printf("signal %d after %d ticks\n", number, ticks);
    uv_close((uv_handle_t *)it, NULL);
}

static void give_room(uv_handle_t *it, size_t wanted, uv_buf_t *buffer)
{
    (void)it, (void)wanted;
    *buffer = uv_buf_init(room, sizeof room);
}

static void got(uv_stream_t *stream, ssize_t bytes, const uv_buf_t *buffer)
{
    if (bytes > 0)
        printf("read %.*s\n", (int)bytes, buffer->base);
    else
        uv_close((uv_handle_t *)stream, NULL);
}

static void sent(uv_write_t *request, int status)
{
    printf("written: %d\n", status);
    uv_close((uv_handle_t *)request->handle, NULL);
}

static void files(void)
{
    uv_fs_t request;
    uv_buf_t text = uv_buf_init("written by libuv\n", 17);
    int file = uv_fs_open(loop, &request, "uv.out", O_CREAT | O_RDWR, 0644, NULL);
    printf("%d", uv_fs_write(loop, &request, file, &text, 1, 0, NULL));
    printf(" %d", uv_fs_fstat(loop, &request, file, NULL));
    printf(" %d", (int)request.statbuf.st_size);
    printf(" %d", uv_fs_close(loop, &request, file, NULL));
    printf(" %s\n", uv_strerror(uv_fs_open(loop, &request, "missing", O_RDONLY, 0, NULL)));
}

int main(void)
{
    uv_file pair[2];
    uv_write_t request;
    uv_buf_t text = uv_buf_init("a message", 9);
    loop = uv_default_loop();
    uv_timer_init(loop, &timer);
    uv_timer_start(&timer, tick, 5, 5);
    uv_signal_init(loop, &handler);
    uv_signal_start(&handler, signalled, SIGUSR1);
    uv_async_init(loop, &wake, awake);
    uv_pipe(pair, UV_NONBLOCK_PIPE, UV_NONBLOCK_PIPE);
    for (int i = 0; i < 2; i++) {
        uv_pipe_init(loop, &ends[i], 0);
        uv_pipe_open(&ends[i], pair[i]);
    }
    uv_read_start((uv_stream_t *)&ends[0], give_room, got);
    uv_write(&request, (uv_stream_t *)&ends[1], &text, 1, sent);
    for (size_t i = 0; i < 4; i++) {
        works[i].data = (void *)(i + 1);
        uv_queue_work(loop, &works[i], compute, computed);
    }
    int left = uv_run(loop, UV_RUN_DEFAULT);
    files();
    printf("uv: %d left, %d works, woken %d\n", left, worked, woken);
    return 0;
}
