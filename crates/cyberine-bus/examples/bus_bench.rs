//! The bus beside the least that its work can cost, in one run, interleaved. Only the ratios travel
//! from machine to machine. `cargo xtask bench bus` runs it.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a measurement prints, and stops where it fails"
)]

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use cyberine_bus::{
    Address, AddressKind, Bus as _, Channel, Durability, Envelope, FileBus, From, FromKind, Outgoing,
    ReadRequest, Sender,
};
use cyberine_fs::{Wake, Watcher};
use cyberine_types::{InstanceId, SystemClock};
use futures_util::future::join_all;
use tokio::runtime::Runtime;

const SLICES: usize = 21;
const WRITES: usize = 40;
const READS: usize = 30;
const WAKES: usize = 300;

fn main() {
    let place = tempfile::Builder::new().prefix("bus-bench-").tempdir_in(here()).unwrap();
    let bench = Bench { home: place.path().join("home"), scratch: place.path().to_owned() };
    println!("{:<66} {:>11} {:>11} {:>7}  target", "what", "floor", "ours", "ratio");
    bench.publishing();
    bench.reading();
    bench.waking();
}

/// Where the build puts its files: on a disk, which `/tmp` need not be.
fn here() -> PathBuf {
    std::env::current_exe().unwrap().parent().unwrap().to_owned()
}

struct Bench {
    home: PathBuf,
    scratch: PathBuf,
}

/// One line of the table, from times of slices that were measured in turn.
fn row(what: &str, floor: &[Duration], ours: &[Duration], target: &str) {
    let mut ratios: Vec<f64> =
        floor.iter().zip(ours).map(|(floor, ours)| ours.as_secs_f64() / floor.as_secs_f64()).collect();
    ratios.sort_by(f64::total_cmp);
    let micros = |times: &[Duration]| format!("{:.1} µs", median(times).as_secs_f64() * 1e6);
    let ratio = ratios[ratios.len() / 2];
    println!("{what:<66} {:>11} {:>11} {ratio:>6.2}x  {target}", micros(floor), micros(ours));
}

fn median(times: &[Duration]) -> Duration {
    let mut times = times.to_vec();
    times.sort();
    times[times.len() / 2]
}

/// How long one of `count` took.
fn each(count: usize, work: impl FnOnce()) -> Duration {
    let started = Instant::now();
    work();
    started.elapsed() / u32::try_from(count).unwrap()
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap()
}

fn chat(id: &str) -> Address {
    Address::new(AddressKind::Chat, id).unwrap()
}

/// A message whose record has about 512 bytes.
fn note(to: &Address) -> Outgoing {
    let from = From { kind: FromKind::Mcp, id: "client@1".to_owned() };
    let (principal, pid) = ("local/user".to_owned(), std::process::id());
    let sender = Sender { principal, channel: Channel::Mcp, pid, instance_id: InstanceId::random() };
    Outgoing::note(to.clone(), from, sender, "x".repeat(150))
}

impl Bench {
    fn bus(&self) -> FileBus {
        FileBus::new(&self.home, Arc::new(SystemClock))
    }

    fn segment(&self, id: &str, first: u64) -> PathBuf {
        self.home.join("bus/chat").join(id).join(format!("{first:020}.jsonl"))
    }

    fn log(&self, name: &str) -> File {
        OpenOptions::new().append(true).create(true).open(self.scratch.join(name)).unwrap()
    }

    fn publishing(&self) {
        let (bus, runtime, log) = (self.bus(), runtime(), self.log("log"));
        let place = chat("durable");
        let send = || bus.publish(note(&place), Durability::Durable);
        runtime.block_on(send()).unwrap();
        let record = std::fs::read(self.segment("durable", 1)).unwrap();
        let append = |mut log: &File| {
            log.write_all(&record).unwrap();
            log.sync_data().unwrap();
        };
        let mut times = [const { Vec::new() }; 6];
        for _ in 0..SLICES {
            times[0].push(each(WRITES, || (0..WRITES).for_each(|_| append(&log))));
            times[1].push(each(WRITES, || {
                (0..WRITES).for_each(|_| assert!(runtime.block_on(send()).is_ok()));
            }));
            times[2].push(each(64, || drop(runtime.block_on(join_all((0..64).map(|_| send()))))));
            let count = 16 * WRITES;
            times[3].push(each(count, || threads(16, |_| (0..WRITES).for_each(|_| append(&log)))));
            times[4].push(each(count, || threads(16, |_| publish(&bus, &place))));
            // As 16 processes would: nothing is shared but the files.
            let strangers: Vec<FileBus> = (0..16).map(|_| self.bus()).collect();
            times[5].push(each(count, || threads(16, |index| publish(&strangers[index], &place))));
        }
        let [alone, one, waiting, bare, shared, strangers] = &times;
        row("durable publish, one writer / append + fdatasync", alone, one, "<= 1.2x, 1 flush");
        row("… each of 64 waiting in one process / the same, alone", alone, waiting, "<= 0.12x");
        row("… each of 16 writing threads / the same, alone", alone, shared, "");
        row("… each of 16 writing threads / 16 threads that append + fdatasync", bare, shared, "");
        row("… each of 16 that share nothing / 16 threads that append + fdatasync", bare, strangers, "");
    }

    fn reading(&self) {
        let runtime = runtime();
        let bus = self.bus();
        let (small, large) = (chat("small"), chat("large"));
        runtime.block_on(async {
            for (place, count) in [(&small, 10_000), (&large, 100_000)] {
                for _ in 0..count / 250 {
                    let all = join_all((0..250).map(|_| bus.publish(note(place), Durability::Fast)));
                    assert!(all.await.iter().all(Result::is_ok));
                }
            }
        });
        let read = |place: &Address, request: ReadRequest, wanted: usize| {
            let page = runtime.block_on(bus.read(place.clone(), request)).unwrap();
            assert_eq!(page.messages.len(), wanted);
        };
        let after = |after| ReadRequest { after, ..ReadRequest::default() };
        let newest = ReadRequest { newest: true, limit: 20, ..ReadRequest::default() };
        let path = self.last_segment("large");
        let (hundred, twenty) = (End::of(&path, 100), Arc::new(End::of(&path, 20)));
        let later = read_one(&runtime, &bus, &large, 99_900).sent_at;
        let since = ReadRequest { since: Some(later), ..ReadRequest::default() };
        let send = |again| {
            let message = Outgoing { again, ..note(&chat("large too")) };
            assert!(runtime.block_on(bus.publish(message, Durability::Fast)).is_ok());
        };
        runtime.block_on(async {
            for _ in 0..400 {
                let messages = (0..250).map(|_| bus.publish(note(&chat("large too")), Durability::Fast));
                assert!(join_all(messages).await.iter().all(Result::is_ok));
            }
        });
        let mut times = [const { Vec::new() }; 11];
        for _ in 0..SLICES {
            times[0].push(each(READS, || (0..READS).for_each(|_| hundred.read())));
            times[1].push(each(READS, || (0..READS).for_each(|_| read(&small, after(9_900), 100))));
            times[2].push(each(READS, || (0..READS).for_each(|_| read(&large, after(99_900), 100))));
            times[3].push(each(READS, || (0..READS).for_each(|_| read(&large, after(50_000), 100))));
            times[4].push(each(READS, || (0..READS).for_each(|_| twenty.read())));
            times[5].push(each(READS, || (0..READS).for_each(|_| read(&large, newest, 20))));
            times[7].push(each(READS, || {
                (0..READS).for_each(|_| {
                    let twenty = Arc::clone(&twenty);
                    runtime
                        .block_on(async { tokio::task::spawn_blocking(move || twenty.read()).await })
                        .unwrap();
                });
            }));
            times[8].push(each(READS, || (0..READS).for_each(|_| read(&large, since, 99))));
            times[9].push(each(READS, || (0..READS).for_each(|_| send(None))));
            times[10].push(each(READS, || (0..READS).for_each(|_| send(Some(100_000)))));
            // A process that has just begun: nothing is open, nothing is known.
            times[6].push(each(READS, || {
                (0..READS).for_each(|_| {
                    let page = runtime.block_on(self.bus().read(large.clone(), after(99_900))).unwrap();
                    assert_eq!(page.messages.len(), 100);
                });
            }));
        }
        let [
            plain_100,
            of_small,
            of_large,
            of_middle,
            plain_20,
            of_newest,
            cold,
            aside_20,
            by_time,
            first,
            again,
        ] = &times;
        row("100 new of 100,000 messages / 100 new of 10,000", of_small, of_large, "<= 1.2x");
        row("100 new of 100,000 messages / offset read + parse", plain_100, of_large, "<= 2x");
        row("100 sent since a time, without a cursor / 100 new by a cursor", of_large, by_time, "<= 2x");
        row("100 from the middle of 100,000 / offset read + parse", plain_100, of_middle, "<= 2x");
        row("… by a bus that has just been made / offset read + parse", plain_100, cold, "<= 2x");
        row("newest 20 of 100,000 messages / offset read + parse", plain_20, of_newest, "<= 2x");
        row("one that may be of 100,000 already / one that is not, not synced", first, again, "");
        row("newest 20 of 100,000 messages / the same on a blocking thread", aside_20, of_newest, "");
    }

    fn last_segment(&self, id: &str) -> PathBuf {
        let dir = std::fs::read_dir(self.home.join("bus/chat").join(id)).unwrap();
        let paths = dir.map(|entry| entry.unwrap().path());
        paths.filter(|path| path.extension().is_some_and(|end| end == "jsonl")).max().unwrap()
    }

    fn waking(&self) {
        use rustix::fs::inotify;
        // Each in a directory of its own, so that none hears of another.
        let [bare, watched] = ["bare", "watched"].map(|name| self.scratch.join(name));
        [&bare, &watched].into_iter().for_each(|dir| std::fs::create_dir(dir).unwrap());
        let (log, seen) = (self.log("bare/log"), self.log("watched/log"));
        let [mut floor, mut watcher, mut ours, mut stranger] = [const { Vec::new() }; 4];
        let mut news = Watcher::shared().watch(&watched);
        let place = chat("woken");
        // The other is as another process: nothing is shared but the files.
        let (bus, other) = (self.bus(), self.bus());
        let (sleeper, waker) = (runtime(), runtime());
        waker.block_on(bus.publish(note(&place), Durability::Fast)).unwrap();
        let instance = inotify::init(inotify::CreateFlags::CLOEXEC).unwrap();
        inotify::add_watch(&instance, &bare, inotify::WatchFlags::MODIFY).unwrap();
        for seq in (1..2 * u64::try_from(WAKES).unwrap()).step_by(2) {
            floor.push(woken(
                || assert!(rustix::io::read(&instance, &mut [0; 512]).unwrap() > 0),
                || (&log).write_all(b"news\n").unwrap(),
            ));
            // What is left of the news before.
            while sleeper.block_on(news.changed(Duration::ZERO)) == Wake::Changed {}
            watcher.push(woken(
                || assert_eq!(sleeper.block_on(news.changed(Duration::from_secs(60))), Wake::Changed),
                || (&seen).write_all(b"news\n").unwrap(),
            ));
            ours.push(woken(
                || sleeper.block_on(bus.changed(place.clone(), seq, Duration::from_secs(60))),
                || assert!(waker.block_on(bus.publish(note(&place), Durability::Fast)).is_ok()),
            ));
            stranger.push(woken(
                || sleeper.block_on(bus.changed(place.clone(), seq + 1, Duration::from_secs(60))),
                || assert!(waker.block_on(other.publish(note(&place), Durability::Fast)).is_ok()),
            ));
        }
        row("publish to a reader that waits / write to one on inotify", &floor, &ours, "<= 2x");
        row("… to one in another process / write to one on inotify", &floor, &stranger, "");
        row("… to one in another process / write to one on the one watcher", &watcher, &stranger, "");
        ours.append(&mut stranger);
        ours.sort();
        let late = ours[ours.len() * 99 / 100];
        println!("{:<66} {:>31}  <= 50 ms", "… of 100 the slowest but one", format!("{late:.1?}"));
    }
}

fn read_one(runtime: &Runtime, bus: &FileBus, place: &Address, after: u64) -> Envelope {
    let request = ReadRequest { after, limit: 1, ..ReadRequest::default() };
    let page = runtime.block_on(bus.read(place.clone(), request)).unwrap();
    page.messages.into_iter().next().unwrap()
}

/// From the news to the end of the wait for it.
fn woken(wait: impl FnOnce() + Send, news: impl FnOnce()) -> Duration {
    std::thread::scope(|scope| {
        let sleeper = scope.spawn(move || {
            wait();
            Instant::now()
        });
        // Long enough for the other to be asleep.
        std::thread::sleep(Duration::from_millis(3));
        let told = Instant::now();
        news();
        sleeper.join().unwrap().duration_since(told)
    })
}

fn publish(bus: &FileBus, place: &Address) {
    let runtime = runtime();
    for _ in 0..WRITES {
        runtime.block_on(bus.publish(note(place), Durability::Durable)).unwrap();
    }
}

fn threads(count: usize, work: impl Fn(usize) + Sync) {
    std::thread::scope(|scope| {
        for index in 0..count {
            let work = &work;
            scope.spawn(move || work(index));
        }
    });
}

/// Where the last messages of a file are.
struct End {
    path: PathBuf,
    start: usize,
    length: usize,
    count: usize,
}

impl End {
    fn of(path: &Path, count: usize) -> Self {
        let bytes = std::fs::read(path).unwrap();
        let mut ends =
            bytes.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
        let start = ends.nth(count).unwrap_or(0);
        Self { path: path.to_owned(), start, length: bytes.len() - start, count }
    }

    /// The least that reading them can cost whoever knows where they begin.
    fn read(&self) {
        let file = File::open(&self.path).unwrap();
        let mut buffer = vec![0; self.length];
        file.read_exact_at(&mut buffer, self.start as u64).unwrap();
        let lines = buffer.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let found: Vec<Envelope> = lines.map(|line| serde_json::from_slice(line).unwrap()).collect();
        assert_eq!(found.len(), self.count);
    }
}
