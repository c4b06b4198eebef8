//! Tasks on several threads, with channels, timers, a pair of sockets and files, by tokio.

use std::time::Duration;

use tokio::{
    fs,
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
    sync::mpsc,
    time,
};

#[tokio::main(worker_threads = 3)]
async fn main() {
    // The message of a panic contains the thread's number, which differs.
    std::panic::set_hook(Box::new(|_| ()));
    let (send, mut receive) = mpsc::channel(4);
    for task in 0..20_u64 {
        let send = send.clone();
        tokio::spawn(async move {
            time::sleep(Duration::from_millis(task % 5)).await;
            send.send(task * task).await.unwrap();
        });
    }
    drop(send);
    let mut sum = 0;
    while let Some(value) = receive.recv().await {
        sum += value;
    }
    let (mut near, mut far) = UnixStream::pair().unwrap();
    let echo = tokio::spawn(async move {
        let mut bytes = [0; 1000];
        let mut all = 0;
        while let Ok(read @ 1..) = far.read(&mut bytes).await {
            all += read;
            far.write_all(&bytes[..read]).await.unwrap();
        }
        all
    });
    let mut answer = vec![0; 5_000];
    near.write_all(&[7; 5_000]).await.unwrap();
    near.read_exact(&mut answer).await.unwrap();
    near.shutdown().await.unwrap();
    let echoed = echo.await.unwrap();
    let late = time::timeout(Duration::from_millis(30), std::future::pending::<()>()).await;
    fs::write("tokio.out", "written").await.unwrap();
    let text = fs::read_to_string("tokio.out").await.unwrap();
    let panicked = tokio::task::spawn_blocking(|| panic!("expected")).await.is_err();
    println!("tokio: {sum} {echoed} {} {text} {panicked}", late.is_err());
}
