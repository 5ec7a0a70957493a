//! A client that costs little: one kept connection, one request it sends again and again. Many of them
//! share one thread.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// How long everybody may be silent.
const SILENCE: i64 = 20;

pub(super) struct Line {
    stream: TcpStream,
    request: Vec<u8>,
    buffer: Vec<u8>,
    /// Calls that were answered.
    pub(super) answered: u64,
}

impl Line {
    pub(super) fn open(address: &str, request: Vec<u8>) -> Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(20)))?;
        Ok(Self { stream, request, buffer: Vec::with_capacity(4096), answered: 0 })
    }

    /// Sends the request and waits for its answer: microseconds.
    pub(super) fn ask(&mut self) -> Result<f64> {
        let start = Instant::now();
        self.send()?;
        while !self.read()? {}
        Ok(start.elapsed().as_secs_f64() * 1e6)
    }

    /// Sends the request.
    pub(super) fn send(&mut self) -> Result<()> {
        self.stream.write_all(&self.request).context("sending a request")
    }

    /// Sends another request than its own.
    pub(super) fn send_other(&mut self, request: &[u8]) -> Result<()> {
        self.stream.write_all(request).context("sending a request")
    }

    /// Sends as much as is taken, again and again, until nothing is; the answers are not read. How many
    /// bytes it was.
    pub(super) fn stuff(&mut self) -> Result<usize> {
        self.stream.set_nonblocking(true)?;
        let mut sent = 0;
        loop {
            // What was cut is gone on with, so that the server sees whole requests.
            let from = self.buffer.len() % self.request.len();
            match self.stream.write(&self.request[from..]) {
                Ok(0) => return Ok(sent),
                Ok(taken) => {
                    sent += taken;
                    self.buffer.resize((from + taken) % self.request.len(), 0);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(sent),
                // A server may end with somebody who does not read.
                Err(error) if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => {
                    return Ok(sent);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Reads what is there; whether an answer is whole now.
    pub(super) fn read(&mut self) -> Result<bool> {
        let mut bytes = [0; 16 << 10];
        let count = self.stream.read(&mut bytes).context("waiting for an answer")?;
        ensure!(count > 0, "the server closed a connection");
        self.buffer.extend_from_slice(bytes.get(..count).unwrap_or_default());
        match whole(&self.buffer)? {
            Some(length) => {
                ensure!(self.buffer.len() == length, "more than one answer to one request");
                self.buffer.clear();
                self.answered += 1;
                Ok(true)
            }
            None => Ok(false),
        }
    }
}

/// The length of the answer that `buffer` begins with, once it is whole; it has to be a good one.
fn whole(buffer: &[u8]) -> Result<Option<usize>> {
    let Some(end) = buffer.windows(4).position(|four| four == b"\r\n\r\n") else { return Ok(None) };
    let head = String::from_utf8_lossy(buffer.get(..end).unwrap_or_default());
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    let length = length.with_context(|| format!("an answer without a length: {head}"))?;
    let body = buffer.get(end + 4..).unwrap_or_default();
    if body.len() < length {
        return Ok(None);
    }
    if !head.starts_with("HTTP/1.1 200 ") || body.windows(8).any(|eight| eight == b"\"error\":") {
        bail!("{head}\n{}", String::from_utf8_lossy(body));
    }
    Ok(Some(end + 4 + length))
}

/// Everybody asks again as soon as there is an answer, until there are `calls` of them: seconds.
pub(super) fn all(lines: &mut [Line], calls: usize) -> Result<f64> {
    let start = Instant::now();
    let mut sent = lines.len();
    for line in lines.iter_mut() {
        line.send()?;
    }
    let mut open = lines.len();
    while open > 0 {
        for index in readable(lines)? {
            let line = &mut lines[index];
            if line.read()? {
                if sent < calls {
                    sent += 1;
                    line.send()?;
                } else {
                    open -= 1;
                }
            }
        }
    }
    Ok(start.elapsed().as_secs_f64())
}

/// Who has something to read; waits for it.
pub(super) fn readable(lines: &[Line]) -> Result<Vec<usize>> {
    let mut fds: Vec<PollFd<'_>> =
        lines.iter().map(|line| PollFd::new(&line.stream, PollFlags::IN)).collect();
    let silence = Timespec { tv_sec: SILENCE, tv_nsec: 0 };
    ensure!(poll(&mut fds, Some(&silence))? > 0, "nobody was answered for {SILENCE} s");
    Ok(fds.iter().enumerate().filter(|(_, fd)| !fd.revents().is_empty()).map(|(index, _)| index).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_whole_when_its_body_is() {
        let text = b"HTTP/1.1 200 OK\r\ncontent-Length: 2\r\n\r\n{}";
        assert_eq!(whole(text).unwrap(), Some(text.len()));
        assert_eq!(whole(&text[..text.len() - 1]).unwrap(), None);
        assert_eq!(whole(&text[..20]).unwrap(), None);
        assert!(whole(b"HTTP/1.1 400 No\r\nContent-Length: 0\r\n\r\n").is_err());
        assert!(whole(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
        assert!(whole(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{\"error\":1").is_err());
    }
    /// A server that answers every head with the same, or reads nothing at all.
    fn server(answers: bool) -> String {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        std::thread::spawn(move || {
            let mut silent = Vec::new();
            for mut stream in listener.incoming().map(Result::unwrap) {
                if !answers {
                    silent.push(stream);
                    continue;
                }
                std::thread::spawn(move || {
                    let mut reader = std::io::BufReader::new(stream.try_clone().unwrap());
                    while crate::http::Head::read(&mut reader).unwrap().is_some() {
                        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}").unwrap();
                    }
                });
            }
        });
        address
    }

    #[test]
    fn many_ask_as_often_as_they_are_to() {
        let address = server(true);
        let request = || crate::http::request("POST", &address, &[], None);
        let mut lines: Vec<Line> = (0..5).map(|_| Line::open(&address, request()).unwrap()).collect();
        lines[0].ask().unwrap();
        all(&mut lines, 100).unwrap();
        assert_eq!(lines.iter().map(|line| line.answered).sum::<u64>(), 101);
        assert!(lines.iter().all(|line| line.answered > 0));
    }

    #[test]
    fn stuffing_ends_where_nothing_is_taken() {
        let address = server(false);
        let mut line = Line::open(&address, vec![b'x'; 3000]).unwrap();
        assert!(line.stuff().unwrap() > 1 << 12);
    }
}
