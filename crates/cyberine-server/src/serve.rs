//! Serving one client over a pair of byte streams.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use crate::connection::{Connection, Performed};
use crate::input::{FdInput, Readiness};
use crate::lines::{Line, Lines, fill};
use crate::output::Output;
use crate::output::fd::FdSink;
use crate::server::Server;
use crate::stdio::StdioGuard;

/// How long calls in flight may go on when the client has closed its end: enough for answers
/// that are about to come, as in `printf … | server`. With what follows it stays under the second
/// in which a server has to end.
const GRACE: Duration = Duration::from_millis(500);

/// How long the threads are waited for at the end.
const JOIN_WAIT: Duration = Duration::from_millis(100);

/// How often a reader that is held back looks whether the client is still there.
const STALL_POLL: Duration = Duration::from_millis(50);

/// How long a client that has closed its end may let the answers stand still.
const STALL_LIMIT: u32 = 4;

/// Why serving ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The client closed its end: the usual way.
    InputClosed,
    /// The client reads no more answers.
    OutputClosed,
    /// It was told to stop.
    Stopped,
}

impl Server {
    /// Serves the client behind `stdio`, until it goes away or `stop` is cancelled. Calls in
    /// flight are then cancelled, and what waits is written; within a second it is over.
    ///
    /// Reads on a thread of its own and answers there what can be answered at once; what waits
    /// runs on the calling runtime, for which one worker is enough.
    ///
    /// # Errors
    /// Where the descriptors cannot be used or a thread cannot be started.
    ///
    /// # Cancel safety
    /// Dropped half way, it leaves calls running and a thread waiting; cancel `stop` instead.
    pub async fn serve_stdio(
        self: Arc<Self>,
        stdio: StdioGuard,
        stop: CancellationToken,
    ) -> io::Result<Ended> {
        let (input, stopper) = FdInput::new(stdio.input)?;
        let connection = Connection::new(self, Output::to_fd(FdSink::new(stdio.output)?));
        connection.announce_lists();
        let writing = on_thread("mcp-output", &connection, |connection| connection.output.write_blocked())?;
        let reading = on_thread("mcp-input", &connection, move |connection| read_lines(connection, &input))?;
        let ended = tokio::select! {
            biased;
            // First, because the reading ends with it.
            () = connection.output.broken() => Ended::OutputClosed,
            () = reading.cancelled() => Ended::InputClosed,
            () = stop.cancelled() => Ended::Stopped,
        };
        drop(stopper);
        wind_down(&connection, ended).await;
        // Both end by themselves now; a handler that blocks the reader is not waited for.
        let _ =
            tokio::time::timeout(JOIN_WAIT, async { tokio::join!(reading.cancelled(), writing.cancelled()) })
                .await;
        Ok(ended)
    }

    /// Serves one client over any pair of streams, all in the calling task. A client that neither
    /// reads nor drops its stream holds the server back until `stop`.
    ///
    /// # Cancel safety
    /// Dropped half way, it leaves the client without its answers; cancel `stop` instead.
    pub async fn serve(
        self: Arc<Self>,
        reader: impl AsyncRead + Unpin,
        writer: impl AsyncWrite + Unpin,
        stop: CancellationToken,
    ) -> Ended {
        let connection = Connection::new(self, Output::to_task());
        connection.announce_lists();
        let serving = async {
            let ended = tokio::select! {
                biased;
                () = read_stream(&connection, reader) => Ended::InputClosed,
                () = connection.output.broken() => Ended::OutputClosed,
                () = stop.cancelled() => Ended::Stopped,
            };
            wind_down(&connection, ended).await;
            ended
        };
        let (ended, ()) = tokio::join!(serving, connection.output.write_to(writer));
        ended
    }
}

async fn wind_down(connection: &Connection, ended: Ended) {
    // Who reads no answers needs no grace for more of them.
    let heard = ended != Ended::OutputClosed && connection.output.has_room();
    let grace = if heard { GRACE } else { Duration::ZERO };
    connection.wind_down(grace).await;
}

/// Runs `work` on a thread, with the runtime entered. The token is cancelled when it is over.
fn on_thread(
    name: &str,
    connection: &Arc<Connection>,
    work: impl FnOnce(&Arc<Connection>) + Send + 'static,
) -> io::Result<CancellationToken> {
    let over = CancellationToken::new();
    let guard = over.clone().drop_guard();
    let (connection, runtime) = (Arc::clone(connection), Handle::current());
    thread::Builder::new().name(name.to_owned()).spawn(move || {
        let _entered = runtime.enter();
        work(&connection);
        drop(guard);
    })?;
    Ok(over)
}

/// Reads and serves lines until the stream ends, fails, is told to stop, or nobody reads the
/// answers.
fn read_lines(connection: &Arc<Connection>, input: &FdInput) {
    let mut lines = Lines::new(connection.server.profile.profile().limits.frame);
    loop {
        while let Some(line) = lines.next() {
            if !held_back(connection, input) {
                return;
            }
            serve_line(connection, line);
        }
        connection.output.flush();
        match input.wait(connection.output.descriptor()).and_then(|readiness| match readiness {
            Readiness::Stopped => Ok(0),
            Readiness::Unheard => {
                connection.output.hung_up();
                Ok(0)
            }
            Readiness::Ready => fill(&mut lines, |space| input.read(space)),
        }) {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => {
                tracing::warn!(%error, "reading requests failed");
                break;
            }
        }
    }
    if let Some(line) = lines.last() {
        serve_line(connection, line);
        connection.output.flush();
    }
}

/// Serves one line. Only a request that finds no place holds up the lines behind it.
fn serve_line(connection: &Arc<Connection>, line: Line<'_>) {
    let mut received = connection.receive(line);
    while connection.perform(&mut received) == Performed::UpToPlace {
        Handle::current().block_on(connection.place(&received));
    }
}

/// As [`serve_line`], over an async stream.
async fn serve_line_async(connection: &Arc<Connection>, line: Line<'_>) {
    let mut received = connection.receive(line);
    while connection.perform(&mut received) == Performed::UpToPlace {
        connection.place(&received).await;
    }
}

/// Waits until there is room for an answer. `false` where the client has closed its end and lets
/// the answers stand.
fn held_back(connection: &Connection, input: &FdInput) -> bool {
    let (mut still, mut seen) = (0, None);
    if !connection.output.has_room() {
        connection.output.flush();
    }
    while !connection.output.has_room() {
        let (room, written) = connection.output.wait_room(STALL_POLL);
        if room {
            break;
        }
        still = if seen.replace(written) == Some(written) && input.hung_up() { still + 1 } else { 0 };
        if still == STALL_LIMIT {
            return false;
        }
    }
    true
}

/// As [`read_lines`], over an async stream.
async fn read_stream(connection: &Arc<Connection>, mut reader: impl AsyncRead + Unpin) {
    let mut lines = Lines::new(connection.server.profile.profile().limits.frame);
    loop {
        while let Some(line) = lines.next() {
            if !connection.output.has_room() {
                connection.output.flush();
                connection.output.room().await;
            }
            serve_line_async(connection, line).await;
        }
        connection.output.flush();
        match reader.read(lines.space()).await {
            Ok(0) => break,
            Ok(count) => lines.filled(count),
            Err(error) => {
                tracing::warn!(%error, "reading requests failed");
                break;
            }
        }
    }
    if let Some(line) = lines.last() {
        serve_line_async(connection, line).await;
        connection.output.flush();
    }
}
