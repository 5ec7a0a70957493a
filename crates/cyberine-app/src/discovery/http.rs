//! The smallest HTTP client that can ask a server on loopback for a JSON document. The full
//! client of the providers takes longer to build than these servers take to answer.

use std::io;
use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A list of models is small; what is larger is something else.
const LONGEST_ANSWER: u64 = 1 << 20;

/// Asks for `path` and reads the answer as JSON. `None` where nothing listens, or where what
/// listens does not answer 200 with JSON.
pub(super) async fn get_json(address: SocketAddr, path: &str) -> Option<Value> {
    let answer = get(address, path).await.ok()?;
    serde_json::from_slice(&body(&answer)?).ok()
}

async fn get(address: SocketAddr, path: &str) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nAccept: application/json\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(LONGEST_ANSWER).read_to_end(&mut answer).await?;
    Ok(answer)
}

/// The body of a 200 answer, with chunked transfer coding (RFC 9112 section 7.1) undone.
fn body(answer: &[u8]) -> Option<Vec<u8>> {
    let split = answer.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&answer[..split]).ok()?.to_ascii_lowercase();
    let body = &answer[split + 4..];
    let status = head.lines().next()?.split(' ').nth(1)?;
    if status != "200" {
        return None;
    }
    let chunked =
        head.lines().any(|line| line.starts_with("transfer-encoding:") && line.ends_with("chunked"));
    if chunked { unchunk(body) } else { Some(body.to_vec()) }
}

fn unchunk(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut whole = Vec::new();
    loop {
        let end = rest.windows(2).position(|two| two == b"\r\n")?;
        let size = std::str::from_utf8(&rest[..end]).ok()?.split(';').next()?.trim();
        let size = usize::from_str_radix(size, 16).ok()?;
        if size == 0 {
            return Some(whole);
        }
        let chunk = rest.get(end + 2..)?.get(..size)?;
        whole.extend_from_slice(chunk);
        rest = rest.get(end + 2 + size + 2..)?;
    }
}

#[cfg(test)]
pub(super) mod fixture {
    //! Servers to be found.

    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpListener, TcpStream};

    /// Answers these paths with these bodies and 404 to every other one.
    pub(crate) fn serve(paths: Vec<(&'static str, String)>) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                answer(stream.unwrap(), &paths);
            }
        });
        address
    }

    fn answer(mut stream: TcpStream, paths: &[(&'static str, String)]) {
        let mut request = [0; 1024];
        let count = stream.read(&mut request).unwrap_or(0);
        let request = String::from_utf8_lossy(&request[..count]).into_owned();
        let path = request.split(' ').nth(1).unwrap_or_default();
        let reply = match paths.iter().find(|(known, _)| *known == path) {
            Some((_, body)) => format!(
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
                body.len()
            ),
            None => "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}".to_owned(),
        };
        // A client that has run out of patience is gone by now.
        let _ = stream.write_all(reply.as_bytes());
    }

    /// Takes connections and never says a word.
    pub(crate) fn silent() -> TcpListener {
        TcpListener::bind("127.0.0.1:0").unwrap()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_read_plain_and_in_chunks_and_never_from_a_refusal() {
        let check = |answer: &str, want: Option<&str>| {
            assert_eq!(body(answer.as_bytes()), want.map(|want| want.as_bytes().to_vec()), "{answer:?}");
        };
        check("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", Some("{}"));
        check(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;x=y\r\n{\r\n1\r\n}\r\n0\r\n\r\n",
            Some("{}"),
        );
        check("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n{}", None);
        check("HTTP/1.1 404 Not Found\r\n\r\n{}", None);
        check("SSH-2.0-OpenSSH\r\n", None);
        check("", None);
    }
}
