//! The server: a thread of its own with a runtime of its own.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::control::{Control, State};
use crate::script::Script;
use crate::serve::{Shared, respond};

/// A running server. It listens on loopback only, and stops when this is dropped: connections
/// that are still open break.
#[derive(Debug)]
pub struct ScriptedServer {
    address: SocketAddr,
    control: Arc<Control>,
    stop: CancellationToken,
    thread: Option<JoinHandle<()>>,
}

/// Why the server does not run.
#[derive(Debug, thiserror::Error)]
#[error("the scripted server could not listen on `127.0.0.1:{port}`: choose a free port, or 0 for any")]
pub struct StartError {
    /// The port that was asked for.
    pub port: u16,
    /// What the system said.
    #[source]
    pub source: std::io::Error,
}

impl ScriptedServer {
    /// Starts a server on a free port of loopback.
    ///
    /// # Errors
    ///
    /// [`StartError`], where the system gives no port or no thread.
    pub fn start(script: Script) -> Result<Self, StartError> {
        Self::start_on(0, script)
    }

    /// Starts a server on `port` of loopback; 0 means a free one.
    ///
    /// # Errors
    ///
    /// [`StartError`], where the port is taken or the system gives no thread.
    pub fn start_on(port: u16, script: Script) -> Result<Self, StartError> {
        Self::started(port, script).map_err(|source| StartError { port, source })
    }

    fn started(port: u16, script: Script) -> std::io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let control = Control::new();
        let stop = CancellationToken::new();
        let shared = Arc::new(Shared { script, control: Arc::clone(&control) });
        let stopped = stop.clone();
        let thread = std::thread::Builder::new().name("scripted-llm".to_owned()).spawn(move || {
            // Registration with the runtime fails only where the system is out of descriptors;
            // the server then answers nobody, which every client notices.
            let _ended = runtime.block_on(accept(listener, shared, stopped));
        })?;
        Ok(Self { address, control, stop, thread: Some(thread) })
    }

    /// The server's address as `http://127.0.0.1:<port>`, without `/v1`.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Lets go everything that is or will be held under `name`; returns how many were held.
    pub fn release(&self, name: &str) -> u64 {
        self.control.release(name)
    }

    /// What the server has seen so far.
    #[must_use]
    pub fn state(&self) -> State {
        self.control.state()
    }

    /// Blocks until `ready` holds, at most `limit`.
    ///
    /// # Errors
    ///
    /// The state at the limit, where `ready` does not hold then.
    pub fn wait(&self, limit: Duration, ready: impl Fn(&State) -> bool) -> Result<State, Box<State>> {
        let (state, holds) = self.control.wait_blocking(limit, ready);
        if holds { Ok(state) } else { Err(Box::new(state)) }
    }

    /// Serves until the process ends.
    pub(crate) fn serve_for_ever(mut self) {
        if let Some(thread) = self.thread.take() {
            let _ended = thread.join();
        }
    }
}

impl Drop for ScriptedServer {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(thread) = self.thread.take() {
            let _ended = thread.join();
        }
    }
}

/// Accepts connections until `stop`, and then drops them.
async fn accept(listener: TcpListener, shared: Arc<Shared>, stop: CancellationToken) -> std::io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = stop.cancelled() => return Ok(()),
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => drop(connections.spawn(serve(stream, Arc::clone(&shared)))),
                // Out of descriptors: give connections time to end instead of spinning.
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            },
        }
    }
}

/// Serves one connection to its end, however it ends.
async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    // Small writes are the point of a scripted stream; Nagle's algorithm would join them.
    let _joined_writes = stream.set_nodelay(true);
    let service = service_fn(move |request| respond(Arc::clone(&shared), request));
    // A connection that breaks is an ordinary event here, and its ticket has noted it.
    let _ended = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}
