//! The three pumps of a child. All run at once: a child that is not read while it is written to,
//! or whose error stream fills up, stops for ever.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::mpsc;

use super::queue::Receiver;
use crate::OutputError;

/// How much of the error stream is kept: its last bytes.
pub const TAIL_BYTES: usize = 8 * 1024;

const CHUNK_BYTES: usize = 16 * 1024;

/// Writes `input`, then what comes of `more` as it comes, and closes the pipe once nothing more can
/// come. A child may stop reading whenever it likes.
pub(crate) async fn feed(mut pipe: ChildStdin, input: Bytes, mut more: Receiver) {
    // A child that closed its input, or died, has no use for the rest; its exit tells the story.
    let mut next = Some(input);
    while let Some(text) = next {
        if pipe.write_all(&text).await.is_err() {
            return;
        }
        next = more.recv().await;
    }
    let _ = pipe.shutdown().await;
}

/// Sends what the child writes, as it comes and as bytes, until its end or until `limit` bytes.
/// A full channel stops the reading, and thereby the child.
pub(crate) async fn forward(
    mut pipe: ChildStdout,
    limit: usize,
    out: mpsc::Sender<Result<Bytes, OutputError>>,
) {
    let mut seen = 0_usize;
    let mut buffer = BytesMut::new();
    loop {
        buffer.reserve(CHUNK_BYTES);
        let news = match pipe.read_buf(&mut buffer).await {
            Ok(0) => return,
            Ok(count) => {
                seen = seen.saturating_add(count);
                if seen > limit { Err(OutputError::TooMuch { limit }) } else { Ok(buffer.split().freeze()) }
            }
            Err(source) if source.kind() == io::ErrorKind::Interrupted => continue,
            Err(source) => Err(OutputError::Read { source }),
        };
        let is_last = news.is_err();
        if out.send(news).await.is_err() || is_last {
            return;
        }
    }
}

/// Reads the error stream to its end and keeps the last bytes of it.
pub(crate) async fn keep_tail(mut pipe: ChildStderr, tail: Arc<Mutex<Tail>>) {
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        match pipe.read(&mut chunk).await {
            Ok(0) => return,
            Ok(count) => tail.lock().unwrap_or_else(PoisonError::into_inner).push(&chunk[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

/// The last bytes of a stream.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    bytes: Vec<u8>,
    total: u64,
}

impl Tail {
    fn push(&mut self, chunk: &[u8]) {
        self.total += chunk.len() as u64;
        self.bytes.extend_from_slice(chunk);
        // Cut rarely, so that many small writes do not each move the whole tail.
        if self.bytes.len() > 2 * TAIL_BYTES {
            self.cut();
        }
    }

    fn cut(&mut self) {
        let excess = self.bytes.len().saturating_sub(TAIL_BYTES);
        self.bytes.drain(..excess);
    }

    /// The tail as text, bytes that are not UTF-8 replaced, and how many bytes there were in all.
    pub(crate) fn text(&mut self) -> (String, u64) {
        self.cut();
        (String::from_utf8_lossy(&self.bytes).into_owned(), self.total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_keeps_the_end_and_counts_the_rest() {
        let mut tail = Tail::default();
        for _ in 0..10_000 {
            tail.push(b"0123456789");
            assert!(tail.bytes.len() <= 2 * TAIL_BYTES + 10);
        }
        tail.push("é".as_bytes());
        let (text, total) = tail.text();
        assert_eq!(total, 100_002);
        assert!(text.ends_with("0123456789é") && text.len() == TAIL_BYTES, "{}", text.len());
    }
}
