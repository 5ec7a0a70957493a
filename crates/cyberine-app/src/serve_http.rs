//! Serving many clients over HTTP.

use std::io::Write as _;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use cyberine_http::identity::{Door, Jwt, ProtectedResource};
use cyberine_http::metrics::Metrics;
use cyberine_http::{HttpServer, Settings, operations};
use cyberine_operator::{OperatorTools, RunCompletions, RunResources, RunTasks};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::config::{AccessConfig, HttpConfig};
use crate::environment::{Environment, TOKEN_VARIABLE};
use crate::exit::Exit;
use crate::home::Home;
use crate::invocation::ServeOptions;
use crate::messaging;
use crate::no_token::NoToken;
use crate::problem::Problem;
use crate::runtime;
use crate::serve::Host;
use crate::telemetry;
use crate::who::Callers;

/// Serves the operator surface at `address` until the process is asked to end.
#[must_use]
pub fn serve_http(address: SocketAddr, options: &ServeOptions) -> ExitCode {
    let environment = Arc::new(Environment::read());
    telemetry::start(&environment);
    match serve(address, options, environment) {
        Ok(()) => Exit::Done.into(),
        Err(problem) => {
            tracing::error!("{problem}");
            problem.exit.into()
        }
    }
}

fn serve(address: SocketAddr, options: &ServeOptions, environment: Arc<Environment>) -> Result<(), Problem> {
    refuse_shared_token(&environment)?;
    messaging::backend(&environment)?;
    messaging::presence(&environment)?;
    let home = Home::resolve(&environment)?;
    let access = AccessConfig::load(&home)?;
    refuse_remote(address, &access)?;
    let callers = Callers::of(&access, &environment, &home)?;
    let host = Arc::new(Host::new(options.clone(), environment)?);
    runtime::block_on(async move {
        let listener = listen(address).await?;
        let bound = listener.local_addr().map_err(|error| Problem::of(Exit::Internal, &error))?;
        let serving = Serving::new(bound, &access, callers, &host)?;
        say_where(&serving.url);
        let stop = serving.stop.clone();
        let ending = async {
            runtime::asked_to_end().await;
            stop.cancel();
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = serving.run(listener) => {}
            () = ending => {}
            never = host.announce_soon() => match never {},
        }
        host.farewell().await;
        Ok(())
    })?
}

/// One token that all callers share says nothing of who calls.
fn refuse_shared_token(environment: &Environment) -> Result<(), Problem> {
    if environment.raw(TOKEN_VARIABLE).is_none() {
        return Ok(());
    }
    Err(Problem::new(
        Exit::Configuration,
        format!(
            "`{TOKEN_VARIABLE}` is set, and does not count over HTTP, where every caller has a token of its \
             own: unset it, and hand out tokens with `cyberine token new NAME`"
        ),
    ))
}

/// Others than this machine are served only where that was asked for.
fn refuse_remote(address: SocketAddr, access: &AccessConfig) -> Result<(), Problem> {
    if address.ip().to_canonical().is_loopback() || access.http.allow_remote {
        return Ok(());
    }
    Err(Problem::new(
        Exit::Configuration,
        format!(
            "`{address}` can be reached from other machines, and over plain HTTP: listen on 127.0.0.1 and put a \
             proxy with TLS in front, or set `allow_remote = true` in `[http]` where the network is yours"
        ),
    ))
}

async fn listen(address: SocketAddr) -> Result<TcpListener, Problem> {
    TcpListener::bind(address).await.map_err(|error| {
        Problem::new(
            Exit::Unavailable,
            format!("cannot listen at `{address}`: {error}; choose another address"),
        )
    })
}

/// Where clients find the server; on stderr, which whoever started it reads.
fn say_where(url: &str) {
    // Nobody is left to tell where stderr cannot be written.
    let _ = writeln!(std::io::stderr(), "cyberine-mcp: serving {url}");
}

/// A server that is about to serve.
struct Serving {
    http: HttpServer,
    url: String,
    jwt: Option<Arc<Jwt>>,
    stop: CancellationToken,
}

impl Serving {
    fn new(
        bound: SocketAddr,
        access: &AccessConfig,
        callers: Callers,
        host: &Arc<Host>,
    ) -> Result<Self, Problem> {
        let settings = settings(&access.http)?;
        let local = format!("http://{bound}{}", settings.path);
        let url = access.http.public_url.clone().unwrap_or_else(|| local.clone());
        let mut resource = resource(&url)?;
        if let Some(jwt) = &access.identity.jwt {
            resource = resource.with_authorization_server(&jwt.issuer).with_scopes(jwt.scopes.clone());
        }
        let (metrics, stop) = (Metrics::new(), CancellationToken::new());
        let door = Door::new(callers.resolver).with_resource(resource).with_metrics(Arc::clone(&metrics));
        let services = host.services();
        let tools = Arc::new(OperatorTools::new(services.clone()));
        let server = host.server(tools, Arc::new(NoToken(RunResources::new(services.clone()))))?;
        let server = server
            .with_completions(Arc::new(RunCompletions::new(services.clone())))
            .with_tasks(Arc::new(RunTasks::new(services)));
        let http = HttpServer::new(Arc::new(server), door.clone(), settings)
            .map_err(|fault| Problem::new(Exit::Configuration, format!("[http]: {fault}")))?;
        let routes = operations(door, Arc::clone(&metrics), http.meters(), stop.clone());
        let http = http.with_routes(routes).with_observer(metrics);
        Ok(Self { http, url: local, jwt: callers.jwt, stop })
    }

    async fn run(self, listener: TcpListener) {
        let Self { http, jwt, stop, .. } = self;
        let warming = async {
            if let Some(jwt) = jwt
                && let Err(fault) = jwt.warm().await
            {
                tracing::warn!("no token of the issuer can be checked now: {fault}");
            }
        };
        tokio::join!(warming, http.serve(listener, stop));
    }
}

fn resource(url: &str) -> Result<ProtectedResource, Problem> {
    ProtectedResource::at(url)
        .map_err(|fault| Problem::new(Exit::Configuration, format!("`[http] public_url`: {fault}")))
}

fn settings(http: &HttpConfig) -> Result<Settings, Problem> {
    let usual = Settings::default();
    let mut hosts = http.hosts.clone();
    if let Some(url) = &http.public_url {
        hosts.push(resource(url)?.host().to_owned());
    }
    Ok(Settings {
        hosts,
        origins: http.origins.clone(),
        max_connections: http.max_connections.unwrap_or(usual.max_connections),
        max_streams: http.max_streams.unwrap_or(usual.max_streams),
        max_sessions: http.max_sessions.unwrap_or(usual.max_sessions),
        session_idle: http.session_idle_secs.map_or(usual.session_idle, Duration::from_secs),
        ..usual
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_served_unless_the_configuration_says_otherwise() {
        let mut access = AccessConfig::default();
        for here in ["127.0.0.1:1", "[::1]:1", "127.0.0.9:0"] {
            assert!(refuse_remote(here.parse().unwrap(), &access).is_ok(), "{here}");
        }
        for there in ["0.0.0.0:1", "[::]:1", "10.0.0.1:1"] {
            let refused = refuse_remote(there.parse().unwrap(), &access).unwrap_err();
            assert!(
                refused.exit == Exit::Configuration && refused.message.contains("allow_remote"),
                "{refused}"
            );
        }
        access.http.allow_remote = true;
        assert!(refuse_remote("0.0.0.0:1".parse().unwrap(), &access).is_ok());
    }

    #[test]
    fn a_token_for_all_is_refused_whatever_it_is() {
        let refused = |environment: &Environment| refuse_shared_token(environment).is_err();
        assert!(!refused(&Environment::of([], "/")));
        assert!(refused(&Environment::of([(TOKEN_VARIABLE, "hunter22")], "/")));
        assert!(refused(&Environment::of([(TOKEN_VARIABLE, "")], "/")));
    }

    #[test]
    fn the_name_clients_know_it_by_is_one_it_answers_to() {
        let http = HttpConfig {
            public_url: Some("https://mcp.example.org/mcp".to_owned()),
            ..HttpConfig::default()
        };
        assert_eq!(settings(&http).unwrap().hosts, ["mcp.example.org"]);
        let bad = HttpConfig { public_url: Some("mcp.example.org".to_owned()), ..HttpConfig::default() };
        assert!(settings(&bad).unwrap_err().message.contains("public_url"));
    }
}
