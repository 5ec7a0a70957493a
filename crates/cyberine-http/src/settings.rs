use std::time::Duration;

/// What an [`HttpServer`](crate::HttpServer) allows, and how long it waits. The default serves the
/// clients of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The path of the endpoint.
    pub path: String,
    /// Names by which clients may call this server (`Host`), beside the loopback ones and the address
    /// it is reached at: names or addresses, without a port, such as `mcp.example.org`.
    pub hosts: Vec<String>,
    /// Origins whose pages may use this server, beside those served from the same names: exact, such as
    /// `https://app.example.org`. Pages of these, and of no others, may read the answers (CORS).
    pub origins: Vec<String>,
    /// Connections at once. Further ones wait in the queue of the listener.
    pub max_connections: usize,
    /// Event streams at once. Below the connections, so that requests still get through; one principal
    /// has at most half of them, or 64 where that is more. A further one is refused with 503, unless it is
    /// the answer of a call, which is then its reply alone.
    pub max_streams: usize,
    /// Sessions of the `initialize` era at once. Further ones are refused with 503, once those that
    /// were idle for too long are ended.
    pub max_sessions: usize,
    /// As [`max_sessions`](Self::max_sessions), of one principal.
    pub max_sessions_of_one: usize,
    /// How long a session may be idle.
    pub session_idle: Duration,
    /// The most headers of a request; more are answered with 431.
    pub max_headers: usize,
    /// The longest head of a request in bytes, at least 8 KiB; a longer one is answered with 431.
    pub max_head: usize,
    /// How long the first head of a connection may take: one that says nothing soon gives its place to
    /// others. At most [`head_timeout`](Self::head_timeout).
    pub first_head_timeout: Duration,
    /// How long the head of a request may take, or the next one may be waited for.
    pub head_timeout: Duration,
    /// How long the body of a request may take.
    pub body_timeout: Duration,
    /// How long a client may take nothing of what is sent to it.
    pub write_timeout: Duration,
    /// How long an answer may be silent before it is given as an event stream, which shows the client
    /// and all proxies that somebody works on it.
    pub quiet: Duration,
    /// How often a silent event stream says that it is still there.
    pub keep_alive: Duration,
    /// How long an event stream of a session stays open: its client takes up where it ended
    /// (2025-11-25, `basic/transports`, "Listening for messages"). `None`: until it is over.
    pub stream_lifetime: Option<Duration>,
    /// How long such a client is told to wait before it does.
    pub retry: Duration,
    /// How long calls in flight may go on when the server is told to stop.
    pub grace: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            path: "/mcp".to_owned(),
            hosts: Vec::new(),
            origins: Vec::new(),
            max_connections: 1024,
            max_streams: 512,
            max_sessions: 16 * 1024,
            max_sessions_of_one: 10_000,
            session_idle: Duration::from_secs(30 * 60),
            max_headers: 100,
            max_head: 64 * 1024,
            first_head_timeout: Duration::from_secs(5),
            head_timeout: Duration::from_secs(30),
            body_timeout: Duration::from_secs(30),
            write_timeout: Duration::from_secs(30),
            quiet: Duration::from_secs(2),
            keep_alive: Duration::from_secs(15),
            stream_lifetime: None,
            retry: Duration::from_secs(1),
            grace: Duration::from_secs(10),
        }
    }
}
