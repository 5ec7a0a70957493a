//! A bridge: one Streamable HTTP endpoint on loopback, whatever speaks MCP over stdio behind it. The
//! official suite knows HTTP only; through the bridge it judges the bytes of stdio.
//!
//! What stdio lacks is the bridge's own: sessions, headers that must agree with the body, statuses.
//! Everything else is the child's answer.

mod legacy;
mod modern;
mod reply;

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use self::legacy::Legacy;
use self::modern::Modern;
use self::reply::Reply;
use crate::http::Head;
use crate::proc;

const CLAIM: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const NEWEST: &str = "2026-07-28";

/// The program behind the bridge, and its arguments.
pub(crate) type Program = Vec<String>;

/// Starts a bridge and returns its URL; it lives as long as this process.
pub(crate) fn start(program: Program) -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").context("listening on loopback")?;
    let address = listener.local_addr()?;
    let lanes = Arc::new(Lanes { modern: Modern::new(program.clone()), legacy: Legacy::new(program) });
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(std::result::Result::ok) {
            let lanes = Arc::clone(&lanes);
            std::thread::spawn(move || {
                if let Err(error) = lanes.converse(stream) {
                    eprintln!("bridge: {error:#}");
                }
            });
        }
    });
    Ok(format!("http://{address}/mcp"))
}

/// `cargo xtask bridge COMMAND...`: until it is killed.
pub(crate) fn serve(words: &[&str]) -> Result<()> {
    anyhow::ensure!(!words.is_empty(), "a bridge needs the command of a server that speaks over stdio");
    println!("{}", start(words.iter().map(ToString::to_string).collect())?);
    loop {
        std::thread::park();
    }
}

struct Lanes {
    modern: Arc<Modern>,
    legacy: Legacy,
}

/// What has been begun for a request, so that it can be ended when its client leaves.
enum Begun {
    Nothing,
    Modern(u64),
}

impl Lanes {
    /// Takes the requests of one connection, one after the other.
    fn converse(&self, stream: TcpStream) -> Result<()> {
        stream.set_nodelay(true)?;
        let mut reader = BufReader::new(stream.try_clone()?);
        while let Some(head) = Head::read(&mut reader)? {
            let body = head.body(&mut reader)?;
            let reply = Arc::new(Reply::new(stream.try_clone()?));
            let begun = self.take(&head, &body, &reply);
            // Until the answer is out nothing comes but the end: the client has left. A client that
            // sends its next request at once waits.
            match reader.fill_buf() {
                Ok(bytes) if !bytes.is_empty() => reply.wait(),
                _ => {
                    if let (Begun::Modern(id), false) = (begun, reply.ended()) {
                        self.modern.gone(id);
                    }
                    reply.abandon();
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn take(&self, head: &Head, body: &[u8], reply: &Arc<Reply>) -> Begun {
        let session = head.get("mcp-session-id");
        match head.line.split(' ').next() {
            Some("POST") => {}
            Some("GET") => {
                self.legacy.listen(session, reply);
                return Begun::Nothing;
            }
            Some("DELETE") => {
                self.legacy.end(session, reply);
                return Begun::Nothing;
            }
            _ => {
                reply.refuse(405, None, -32600, "this method is not served");
                return Begun::Nothing;
            }
        }
        let Ok(message) = serde_json::from_slice::<Value>(body) else {
            reply.refuse(400, None, -32700, "the body is no JSON");
            return Begun::Nothing;
        };
        let claim = message["params"]["_meta"].get(CLAIM);
        if claim.is_none() && head.get("mcp-protocol-version") != Some(NEWEST) {
            self.legacy.post(session, message, reply);
            return Begun::Nothing;
        }
        let Some(id) = message.get("id").cloned() else {
            reply.accept();
            return Begun::Nothing;
        };
        if claim.is_some()
            && let Some(fault) = disagreement(head, &message)
        {
            reply.refuse(400, Some(&id), -32020, &fault);
            return Begun::Nothing;
        }
        Begun::Modern(self.modern.post(message, reply))
    }
}

/// What a header says that the body does not.
fn disagreement(head: &Head, message: &Value) -> Option<String> {
    let params = &message["params"];
    let name = match message["method"].as_str().unwrap_or_default() {
        "tools/call" | "prompts/get" => params.get("name"),
        "resources/read" => params.get("uri"),
        "tasks/get" | "tasks/update" | "tasks/cancel" => params.get("taskId"),
        _ => None,
    };
    let expected = [
        ("mcp-protocol-version", params["_meta"].get(CLAIM)),
        ("mcp-method", message.get("method")),
        ("mcp-name", name),
    ];
    expected.into_iter().find_map(|(header, value)| {
        let value = value?.as_str()?;
        (head.get(header) != Some(value)).then(|| format!("the header {header} is not {value:?}"))
    })
}

/// The status of an answer: what its code says, and for bad parameters, whether the request's own
/// envelope is what is bad.
fn status_of(request: &Value, answer: &Value) -> u16 {
    let meta = &request["params"]["_meta"];
    match answer["error"]["code"].as_i64() {
        Some(-32700 | -32600 | -32020 | -32021 | -32022) => 400,
        Some(-32602) if meta.get(CLAIM).is_none() || meta.get(CAPABILITIES).is_none() => 400,
        Some(-32601) => 404,
        _ => 200,
    }
}

/// A server over stdio. Every line it says goes to `hear`, in order; then comes `over`.
struct Server {
    child: Mutex<Child>,
    input: Mutex<Option<ChildStdin>>,
}

impl Server {
    fn start(
        program: &[String],
        hear: impl Fn(Value) + Send + 'static,
        over: impl FnOnce() + Send + 'static,
    ) -> Result<Self> {
        let (name, arguments) = program.split_first().context("a program")?;
        let mut child = Command::new(name)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("starting {name}"))?;
        let input = child.stdin.take();
        let output = child.stdout.take().context("stdout is piped")?;
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(std::result::Result::ok) {
                match serde_json::from_str(&line) {
                    Ok(message) => hear(message),
                    // The suite sees no answer, and says so.
                    Err(_) => eprintln!("bridge: stdout carries something else than JSON: {line:?}"),
                }
            }
            over();
        });
        Ok(Self { child: Mutex::new(child), input: Mutex::new(input) })
    }

    /// Sends a message; one that cannot be sent goes to a child that has ended, which its reader tells.
    fn send(&self, message: &Value) {
        if let Some(input) = lock(&self.input).as_mut() {
            let _ = input.write_all(format!("{message}\n").as_bytes());
        }
    }
}

impl Drop for Server {
    /// Ends it as a host does: by the end of its stdin.
    fn drop(&mut self) {
        drop(lock(&self.input).take());
        let _ = proc::wait(&mut lock(&self.child), Duration::from_secs(5));
    }
}

fn cancelled(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
