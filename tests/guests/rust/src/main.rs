//! An ordinary Rust program: its output is the same as under Linux. `rust FILE THREADS`

use std::{
    cell::RefCell,
    collections::{BTreeMap, HashMap},
    env, fs, io,
    io::{BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write},
    panic,
    process::ExitCode,
    sync::{Arc, Barrier, Condvar, Mutex, OnceLock, RwLock, mpsc},
    thread,
    time::{Duration, Instant, SystemTime},
};

/// First name of a file, and its later name.
const NAMES: [&str; 2] = ["rust.tmp", "rust.new"];

thread_local! {
    static LOCAL: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

fn main() -> Result<ExitCode, io::Error> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [file, threads] = &arguments[..] else { panic!("rust FILE THREADS") };
    let threads: usize = threads.parse().expect("a number of threads");
    environment()?;
    words(file)?;
    files()?;
    time();
    work(threads);
    messages(threads);
    turns();
    panics();
    eprintln!("rust: {threads} threads");
    Ok(ExitCode::from(9))
}

fn environment() -> io::Result<()> {
    let name = env::current_exe()?;
    println!("{:?}, {:?}", name.file_name(), env::current_dir()?.is_absolute());
    println!("{:?}", env::var("no such variable"));
    println!("{} bytes of input", io::stdin().read_to_end(&mut Vec::new())?);
    Ok(())
}

/// Prints the most frequent words of a text, in order, from a hash table with random keys.
fn words(file: &str) -> io::Result<()> {
    let mut counts: HashMap<String, u32> = HashMap::new();
    for line in BufReader::new(fs::File::open(file)?).lines().take(2000) {
        for word in line?.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 3) {
            *counts.entry(word.to_owned()).or_default() += 1;
        }
    }
    let mut sorted: Vec<_> = counts.into_iter().collect();
    sorted.sort_by(|(a, x), (b, y)| y.cmp(x).then(a.cmp(b)));
    println!("{:?} of {}", &sorted[..5], sorted.len());
    Ok(())
}

fn files() -> io::Result<()> {
    let [first, second] = NAMES;
    let _ = NAMES.map(fs::remove_file);
    println!("{:?}", fs::File::open(first).map_err(|error| error.kind()).err());
    let mut file = fs::File::options().read(true).write(true).create_new(true).open(first)?;
    let again = fs::File::create_new(first).map_err(|error| error.kind());
    println!("{:?}", again.err());
    let mut writer = BufWriter::new(&mut file);
    for number in 0..5000 {
        writeln!(writer, "line {number}")?;
    }
    writer.flush()?;
    drop(writer);
    file.seek(SeekFrom::Start(5))?;
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    file.set_len(100)?;
    file.sync_all()?;
    let about = file.metadata()?;
    println!("{} lines, {} bytes, {}", text.lines().count(), about.len(), about.is_file());
    println!("{} copied", fs::copy(first, second)?);
    fs::rename(first, second)?;
    println!("{:?}, {}", fs::exists(first)?, fs::read_to_string(second)?.len());
    fs::remove_file(second)
}

fn time() {
    let (start, date) = (Instant::now(), SystemTime::now());
    thread::sleep(Duration::from_millis(20));
    let waited = start.elapsed();
    println!("{}", waited >= Duration::from_millis(20) && waited < Duration::from_secs(5));
    println!("{:?}", date.elapsed().is_ok_and(|passed| passed >= Duration::from_millis(19)));
}

/// Runs threads that share a table, a sum and a barrier, each with thread-local data.
fn work(threads: usize) {
    static ONCE: OnceLock<u64> = OnceLock::new();
    let (table, sum) = (RwLock::new(BTreeMap::new()), Mutex::new(0));
    let begin = Barrier::new(threads);
    let firsts = thread::scope(|scope| {
        let run = |index: usize| {
            let (table, sum, begin) = (&table, &sum, &begin);
            move || {
                let is_first = begin.wait().is_leader();
                for number in 0..1000 {
                    LOCAL.with_borrow_mut(|local| local.push(number * index as u64));
                    *sum.lock().unwrap() += number;
                }
                let own: u64 = LOCAL.with_borrow(|local| local.iter().sum());
                table.write().unwrap().insert(index, own + ONCE.get_or_init(|| 7));
                is_first
            }
        };
        let spawn = |index| {
            let builder = thread::Builder::new().name(format!("worker {index}"));
            builder.stack_size(256 << 10).spawn_scoped(scope, run(index)).unwrap()
        };
        let all: Vec<_> = (0..threads).map(spawn).collect();
        all.into_iter().map(|one| one.join().unwrap()).filter(|first| *first).count()
    });
    println!("{firsts} first, sum {}, {:?}", sum.into_inner().unwrap(), table.read().unwrap());
}

/// Uses a channel that is full most of the time, and a receive with a timeout.
fn messages(threads: usize) {
    let (send, receive) = mpsc::sync_channel(2);
    let all: Vec<_> = (0..threads as u64)
        .map(|index| {
            let send = send.clone();
            thread::spawn(move || (0..500).for_each(|n| send.send(n * index).unwrap()))
        })
        .collect();
    drop(send);
    println!("{} by messages", receive.iter().sum::<u64>());
    all.into_iter().for_each(|one| one.join().unwrap());
    let (_send, receive) = mpsc::channel::<()>();
    println!("{:?}", receive.recv_timeout(Duration::from_millis(15)));
}

/// Runs two threads that alternate.
fn turns() {
    let shared = Arc::new((Mutex::new(0_u32), Condvar::new()));
    let other = Arc::clone(&shared);
    let by_turns = |(turn, changed): &(Mutex<u32>, Condvar), parity: u32| {
        for _ in 0..200 {
            let mut turn = changed.wait_while(turn.lock().unwrap(), |t| *t % 2 != parity).unwrap();
            *turn += 1;
            changed.notify_one();
        }
    };
    let second = thread::spawn(move || by_turns(&other, 1));
    by_turns(&shared, 0);
    second.join().unwrap();
    let (turn, changed) = &*shared;
    let waited = changed.wait_timeout(turn.lock().unwrap(), Duration::from_millis(15)).unwrap();
    println!("{} turns, {}", *waited.0, waited.1.timed_out());
}

/// Catches panics, one of them in another thread, where it poisons a lock.
fn panics() {
    struct Noisy(&'static str);
    impl Drop for Noisy {
        fn drop(&mut self) {
            println!("{} dropped", self.0);
        }
    }
    // The whole message contains the thread's number, which differs.
    panic::set_hook(Box::new(|about| println!("{:?}", about.payload_as_str())));
    let caught = panic::catch_unwind(|| {
        let _noisy = Noisy("value");
        let numbers = env::args().map(|word| word.len()).collect::<Vec<_>>();
        numbers[numbers.len() + 3]
    });
    println!("{}", caught.is_err());
    let lock = Arc::new(Mutex::new(1));
    let other = Arc::clone(&lock);
    let ended = thread::spawn(move || {
        let _guard = other.lock().unwrap();
        panic!("in a thread");
    });
    println!("{}, {}", ended.join().is_err(), lock.is_poisoned());
}
