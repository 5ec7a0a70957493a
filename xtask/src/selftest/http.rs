//! The real server over HTTP, judged by the bytes on the socket.

mod doors;
mod life;
mod refusals;

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::world::{Place, World};
use crate::http::{Answer, Connection, request};
use crate::served::{FIXED, Served};
use crate::wire::Era;

const PATIENCE: Duration = Duration::from_secs(20);
/// What every request of a decent client carries.
const DECENT: [(&str, &str); 2] =
    [("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")];

/// A server on a port of its own.
struct Site {
    served: Served,
    _place: Place,
}

pub(crate) fn http(world: &World) -> Result<String> {
    let doors = doors::doors(world)?;
    let site = Site::start(world, FIXED)?;
    let refused = refusals::refusals(&site)?;
    let outsized = refusals::outsized(&site)?;
    life::session(&site)?;
    life::same_ids(&site)?;
    // Whatever was sent to it, it still answers, and its end is in order.
    site.discovers()?;
    life::drain(world)?;
    Ok(format!(
        "{doors} callers and {refused} bad requests refused, {outsized}, a session, the same id twice, {} calls \
         ended in order",
        life::IN_FLIGHT
    ))
}

impl Site {
    fn start(world: &World, config: &str) -> Result<Self> {
        let place = world.place()?;
        place.configure(config)?;
        let mut command = place.command();
        command.args(["--http", "127.0.0.1:0"]);
        Ok(Self { served: Served::start(command)?, _place: place })
    }

    fn connect(&self) -> Result<Connection> {
        Connection::open(self.served.address(), PATIENCE)
    }

    /// Sends one request on a connection of its own.
    fn raw(&self, method: &str, headers: &[(&str, &str)], body: Option<&[u8]>) -> Result<Answer> {
        let mut connection = self.connect()?;
        connection.send(&request(method, self.served.address(), headers, body))?;
        let what = || {
            let body: String = String::from_utf8_lossy(body.unwrap_or_default()).chars().take(200).collect();
            format!("{method} with {headers:?} and {body:?}")
        };
        connection.answer().with_context(what)
    }

    /// POSTs a message with the headers of a decent client and those given.
    fn post(&self, headers: &[(&str, &str)], message: &Value) -> Result<Answer> {
        let headers: Vec<_> = DECENT.iter().chain(headers).copied().collect();
        self.raw("POST", &headers, Some(message.to_string().as_bytes()))
    }

    fn discovers(&self) -> Result<()> {
        let answer = self.post(&modern("server/discover"), &discover())?;
        ensure!(answer.status == 200, "discover: {} {}", answer.status, answer.text());
        ensure!(answer.reply()?["result"]["supportedVersions"] == json!(["2026-07-28"]), "{}", answer.text());
        Ok(())
    }
}

/// The headers of a request of the 2026 era.
fn modern(method: &str) -> [(&str, &str); 2] {
    [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", method)]
}

fn message(id: &Value, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

fn discover() -> Value {
    message(&json!(7), "server/discover", Era::Y2026.params(json!({})))
}
