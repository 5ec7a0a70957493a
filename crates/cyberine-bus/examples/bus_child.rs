//! A process that uses a bus and is meant to be killed: the fault tests start it. Every line it
//! prints is an acknowledgement, `ack <number> <sequence number>`, or a refusal, `refused <code>`.
#![expect(
    clippy::unwrap_used,
    reason = "a test's child speaks on its standard output and stops where it fails"
)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use cyberine_bus::{
    Address, AddressKind, Bus as _, BusError, Channel, Durability, FileBus, From, FromKind, Outgoing, Sender,
};
use cyberine_fs::PrivateDir;
use cyberine_types::{InstanceId, MessageId, SystemClock};
use futures_util::future::join_all;

struct Child {
    home: String,
    bus: FileBus,
    /// Which writer it is.
    writer: u32,
    first: u32,
    last: u32,
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [mode, home, writer, first, last] = args.as_slice() else { return say("refused usage") };
    let [writer, first, last] = [writer, first, last].map(|text| text.parse().unwrap());
    let child = Child::new(home, writer, first, last);
    // Without an I/O driver, whose wake-ups would be writes that a fault could meet; and with one
    // thread that blocks, since the nth call of a kind is counted thread by thread.
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().max_blocking_threads(1).build().unwrap();
    let outcome = runtime.block_on(async {
        match mode.as_str() {
            "write" => child.write().await,
            "stubborn" => child.stubborn().await,
            "crowd" => child.crowd().await,
            "crowded" => child.crowded().await,
            "acknowledge" => child.acknowledge().await,
            "wait" => child.wait().await,
            _ => {
                say("refused usage");
                Ok(())
            }
        }
    });
    if let Err(error) = outcome {
        say(&format!("refused {}", error.code()));
    }
}

/// One call a line, so that a line is there whole or not at all; and one that the bus does not
/// use, so that a fault injected into the bus's calls cannot silence the child.
fn say(line: &str) {
    let line = format!("{line}\n");
    rustix::io::writev(std::io::stdout(), &[std::io::IoSlice::new(line.as_bytes())]).unwrap();
}

fn chat() -> Address {
    Address::new(AddressKind::Chat, "here").unwrap()
}

impl Child {
    fn new(home: &str, writer: u32, first: u32, last: u32) -> Self {
        let bus = FileBus::new(home, Arc::new(SystemClock));
        Self { home: home.to_owned(), bus, writer, first, last }
    }

    /// As another process: nothing is open, nothing is shared but the files.
    fn anew(&self) -> Self {
        Self::new(&self.home, self.writer, self.first, self.last)
    }

    /// The message of a number. It has the same id in every process.
    fn message(&self, number: u32, again: bool) -> Outgoing {
        let id: MessageId = format!("{:08x}-0000-4000-8000-{number:012x}", self.writer).parse().unwrap();
        let from = From { kind: FromKind::Mcp, id: self.writer.to_string() };
        let principal = "local/user".to_owned();
        let sender = Sender {
            principal,
            channel: Channel::Mcp,
            pid: std::process::id(),
            instance_id: InstanceId::random(),
        };
        let text = format!("{} {number} {}", self.writer, "x".repeat(usize::try_from(number % 700).unwrap()));
        Outgoing { id, again: again.then_some(0), ..Outgoing::note(chat(), from, sender, text) }
    }

    async fn publish(&self, number: u32, again: bool) -> Result<(), BusError> {
        let receipt = self.bus.publish(self.message(number, again), Durability::Durable).await?;
        say(&format!("ack {number} {}", receipt.seq));
        Ok(())
    }

    /// One after the other; the first may have been published by a process that is dead.
    async fn write(&self) -> Result<(), BusError> {
        for number in self.first..=self.last {
            self.publish(number, number == self.first).await?;
        }
        Ok(())
    }

    /// As `write`, trying each again after an error: no restart is needed.
    async fn stubborn(&self) -> Result<(), BusError> {
        for number in self.first..=self.last {
            let mut again = false;
            while let Err(error) = self.publish(number, again).await {
                say(&format!("refused {}", error.code()));
                again = true;
            }
        }
        Ok(())
    }

    /// All at once.
    /// One message, and then all others at once. The mailbox's lock is held until they wait, so that
    /// how many share a write does not depend on who is faster.
    async fn crowd(&self) -> Result<(), BusError> {
        self.publish(self.first, false).await?;
        let mailbox = std::path::Path::new(&self.home).join("bus/chat/here");
        let held = PrivateDir::open_existing(&mailbox).unwrap().try_lock("lock").unwrap().unwrap();
        let others = join_all((self.first + 1..=self.last).map(|number| self.publish(number, false)));
        let release = async {
            for _ in self.first..=self.last {
                tokio::task::yield_now().await;
            }
            held.release().unwrap();
        };
        tokio::join!(others, release).0.into_iter().collect()
    }

    /// Without a descriptor left, and then with some again.
    async fn crowded(&self) -> Result<(), BusError> {
        let limit = rustix::process::Rlimit { current: Some(64), maximum: Some(64) };
        rustix::process::setrlimit(rustix::process::Resource::Nofile, limit).unwrap();
        // Kept to the end: what one closes late would be free for the next.
        let others: Vec<_> = (self.first..=self.last).map(|number| (number, self.anew())).collect();
        for (number, other) in &others {
            let hoard: Vec<_> = std::iter::from_fn(|| std::fs::File::open("/dev/null").ok()).collect();
            if let Err(error) = other.publish(*number, false).await {
                say(&format!("refused {}", error.code()));
            }
            drop(hoard);
            other.publish(*number, true).await?;
        }
        Ok(())
    }

    async fn acknowledge(&self) -> Result<(), BusError> {
        for number in self.first..=self.last {
            self.publish(number, false).await?;
            let reader = self.bus.acknowledge(chat(), "reader".to_owned(), number.into()).await?;
            say(&format!("ack 0 {}", reader.through));
        }
        Ok(())
    }

    /// Waits for a message that comes a moment later, from elsewhere.
    async fn wait(&self) -> Result<(), BusError> {
        self.publish(self.first, false).await?;
        let started = Instant::now();
        let later = async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            self.anew().publish(self.last, false).await
        };
        let ((), sent) = tokio::join!(self.bus.changed(chat(), 1, Duration::from_secs(60)), later);
        say(&format!("ack 0 {}", started.elapsed().as_millis()));
        sent
    }
}
