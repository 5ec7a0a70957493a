use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use axum::Router;
use cyberine_server::Server;
use futures_util::future::join_all;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::endpoint::{Endpoint, LEAST_HEAD, Link};
use crate::guard::{Guard, NameFault};
use crate::identity::Door;
use crate::observe::{Meters, Nobody, Observer};
use crate::session::Sessions;
use crate::settings::Settings;
use crate::stall::Stalling;
use crate::visitors::Visitors;

/// How long the accepting pauses where there are no descriptors left for a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The longest time between two looks for idle sessions.
const SWEEP: Duration = Duration::from_secs(30);

/// How long the last answers have to be read at the end.
const LINGER: Duration = Duration::from_secs(2);

/// A server over HTTP/1.1: the endpoint for MCP on one path, and perhaps other routes beside it.
///
/// It does no TLS; put a proxy in front of it where others than this machine connect.
pub struct HttpServer {
    server: Arc<Server>,
    door: Door,
    guard: Guard,
    settings: Settings,
    routes: Router,
    observer: Arc<dyn Observer>,
    meters: Meters,
}

impl HttpServer {
    /// Serves `server` to whom `door` lets in.
    ///
    /// # Errors
    /// Where the path, a host or an origin of the settings cannot be one.
    pub fn new(server: Arc<Server>, door: Door, settings: Settings) -> Result<Self, NameFault> {
        let guard = Guard::new(&settings)?;
        let (routes, observer, meters) = (Router::new(), Arc::new(Nobody), Meters::default());
        Ok(Self { server, door, guard, settings, routes, observer, meters })
    }

    /// Serves other paths than that of the endpoint, such as `/healthz`, too. Requests come there that
    /// name this server as their host; who sent them nobody has asked yet. A route may take the other
    /// end of its connection as `ConnectInfo<SocketAddr>`.
    #[must_use]
    pub fn with_routes(mut self, routes: Router) -> Self {
        self.routes = routes;
        self
    }

    /// Tells `observer` of every request.
    #[must_use]
    pub fn with_observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = observer;
        self
    }

    /// How much goes on, to be asked while it serves.
    #[must_use]
    pub fn meters(&self) -> Meters {
        self.meters.clone()
    }

    /// Serves until `stop`, and then ends: takes no new connections, gives calls in flight the grace of
    /// the settings, cancels the others, ends listens with their result and every stream, and waits
    /// until the answers are read, for a bounded time.
    ///
    /// # Cancel safety
    /// Dropped half way, it leaves connections open and calls running; cancel `stop` instead.
    pub async fn serve(self, listener: TcpListener, stop: CancellationToken) {
        let Self { server, door, guard, settings, routes, observer, meters } = self;
        let (closing, killed) = (CancellationToken::new(), CancellationToken::new());
        let endpoint = Arc::new(Endpoint {
            closing: closing.clone(),
            sessions: Sessions::new(&settings, meters.sessions.clone()),
            visitors: Visitors::new(Arc::clone(&server)),
            numbers: AtomicU64::new(1),
            over: CancellationToken::new(),
            server,
            door,
            guard,
            settings,
            routes,
            observer,
            meters,
        });
        let connections = TaskTracker::new();
        let accepting = async {
            let room = Arc::new(Semaphore::new(endpoint.settings.max_connections));
            let mut fails = false;
            // The semaphore is never closed.
            while let Ok(place) = Arc::clone(&room).acquire_owned().await {
                let Some((stream, link)) = accept(&listener, &mut fails).await else { continue };
                let connection = connection(Arc::clone(&endpoint), stream, link, closing.clone(), place);
                connections.spawn(killed.clone().run_until_cancelled_owned(connection));
            }
        };
        tokio::select! {
            () = accepting => {}
            () = sweep(&endpoint) => {}
            () = stop.cancelled() => {}
        }
        drop(listener);
        closing.cancel();
        drain(&endpoint, &connections).await;
        killed.cancel();
        connections.wait().await;
    }
}

/// Takes the next connection; `None` where that failed, and the next one may be tried. That no more can
/// be taken is told once, until one is (`fails`).
async fn accept(listener: &TcpListener, fails: &mut bool) -> Option<(TcpStream, Link)> {
    match accept_one(listener).await {
        Ok(accepted) => {
            *fails = false;
            return Some(accepted);
        }
        Err(error) if is_of_one(&error) => tracing::debug!(%error, "a connection failed at once"),
        Err(error) => {
            if !std::mem::replace(fails, true) {
                tracing::warn!(%error, "no connection can be taken now; is the limit of open files too low?");
            }
            tokio::time::sleep(ACCEPT_PAUSE).await;
        }
    }
    None
}

async fn accept_one(listener: &TcpListener) -> io::Result<(TcpStream, Link)> {
    let (stream, peer) = listener.accept().await?;
    stream.set_nodelay(true)?;
    let local: SocketAddr = stream.local_addr()?;
    Ok((stream, Link { local, peer }))
}

/// Whether an error is that of one connection, and the next one may be taken at once.
fn is_of_one(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, InvalidInput, NotConnected};
    matches!(error.kind(), ConnectionAborted | ConnectionReset | InvalidInput | NotConnected)
}

/// Serves one connection to its end.
async fn connection(
    endpoint: Arc<Endpoint>,
    stream: TcpStream,
    link: Link,
    closing: CancellationToken,
    _place: OwnedSemaphorePermit,
) {
    let _held = endpoint.meters.connections.hold();
    let settings = &endpoint.settings;
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(settings.head_timeout)
        .max_headers(settings.max_headers)
        .max_buf_size(settings.max_head.max(LEAST_HEAD));
    let io = TokioIo::new(Stalling::new(stream, settings.write_timeout));
    let begun = Notify::new();
    let service = service_fn(|request| {
        begun.notify_one();
        let endpoint = Arc::clone(&endpoint);
        async move { Ok::<_, std::convert::Infallible>(endpoint.answer(request, link).await) }
    });
    let silent = async {
        let limit = settings.first_head_timeout.min(settings.head_timeout);
        if tokio::time::timeout(limit, begun.notified()).await.is_ok() {
            std::future::pending::<()>().await;
        }
    };
    let mut serving = std::pin::pin!(builder.serve_connection(io, service));
    let served = tokio::select! {
        served = serving.as_mut() => served,
        () = silent => {
            tracing::debug!("a connection was closed on which no request came in time");
            return;
        }
        () = closing.cancelled() => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = served {
        tracing::debug!(%error, "a connection ended early");
    }
}

/// Ends idle sessions, over and over.
async fn sweep(endpoint: &Endpoint) {
    let pause = SWEEP.min(endpoint.settings.session_idle / 2).max(Duration::from_millis(10));
    loop {
        tokio::time::sleep(pause).await;
        endpoint.sessions.sweep();
    }
}

/// Ends what goes on, and then the connections.
async fn drain(endpoint: &Endpoint, connections: &TaskTracker) {
    let grace = endpoint.settings.grace;
    let (sessions, visitors) = (endpoint.sessions.all(), endpoint.visitors.all());
    tokio::join!(
        join_all(sessions.iter().map(|session| session.peer.wind_down(grace))),
        join_all(visitors.iter().map(|visitor| visitor.peer.wind_down(grace))),
    );
    connections.close();
    if tokio::time::timeout(LINGER, connections.wait()).await.is_ok() {
        return;
    }
    endpoint.over.cancel();
    if tokio::time::timeout(LINGER, connections.wait()).await.is_err() {
        tracing::warn!(connections = connections.len(), "connections were cut off at the end");
    }
}
