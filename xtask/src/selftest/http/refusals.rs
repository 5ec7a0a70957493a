//! What must be refused, and how.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::{DECENT, Site, discover, message, modern};
use crate::http::{Answer, request};
use crate::proc;
use crate::wire::Era;

/// A body nobody should have to hold.
const OUTSIZED: usize = 64 << 20;
/// How much of it is sent at once.
const PIECE: usize = 64 << 10;
/// How much more memory its sender may cost, in KiB.
const GROWTH: u64 = 16 << 10;

/// A refusal: the statuses that say it, its code, and whether it carries the request's id.
struct Refusal {
    statuses: &'static [u16],
    code: i64,
    id: bool,
}

const fn refusal(statuses: &'static [u16], code: i64, id: bool) -> Refusal {
    Refusal { statuses, code, id }
}

const NO_JSON: Refusal = refusal(&[400], -32700, false);
const NO_REQUEST: Refusal = refusal(&[400], -32600, false);
const MISMATCH: Refusal = refusal(&[400], -32020, true);

impl Refusal {
    fn check(&self, what: &str, answer: &Answer) -> Result<()> {
        let said = format!("{what}: {} {}", answer.status, answer.text());
        ensure!(self.statuses.contains(&answer.status), "not {:?}: {said}", self.statuses);
        let error: Value = serde_json::from_slice(&answer.body).with_context(|| said.clone())?;
        ensure!(error["error"]["code"] == self.code, "not {}: {said}", self.code);
        let id = error.get("id");
        ensure!(if self.id { id == Some(&json!(7)) } else { id.is_none() }, "the id: {said}");
        Ok(())
    }
}

/// A case: what it is, its headers beside the decent ones, its message and the refusal.
type Headed<'a> = (&'a str, &'a [(&'a str, &'a str)], Value, Refusal);

/// How many requests were refused as they should be.
pub(super) fn refusals(site: &Site) -> Result<usize> {
    Ok(bodies(site)? + headers(site)? + places(site)? + methods(site)?)
}

fn bodies(site: &Site) -> Result<usize> {
    let with = |id: Value| message(&id, "server/discover", Era::Y2026.params(json!({}))).to_string();
    let nothing = json!({"jsonrpc": "2.0", "id": 7, "result": {}}).to_string();
    let cases: [(&str, Vec<u8>, Refusal); 8] = [
        ("half a message", b"{\"jsonrpc\":".to_vec(), NO_JSON),
        ("no UTF-8", b"{\"jsonrpc\":\"\xff\"}".to_vec(), NO_JSON),
        ("an empty body", Vec::new(), NO_JSON),
        ("a batch", format!("[{}]", with(json!(7))).into_bytes(), NO_REQUEST),
        ("an id of null", with(Value::Null).into_bytes(), NO_REQUEST),
        ("an id that is true", with(json!(true)).into_bytes(), NO_REQUEST),
        ("a number", b"7".to_vec(), NO_REQUEST),
        ("an answer to nothing", nothing.into_bytes(), refusal(&[400], -32600, false)),
    ];
    for (what, body, refusal) in &cases {
        let headers = [DECENT, modern("server/discover")].concat();
        refusal.check(what, &site.raw("POST", &headers, Some(body))?)?;
    }
    Ok(cases.len())
}

fn headers(site: &Site) -> Result<usize> {
    let call = |name: Value| message(&json!(7), "tools/call", Era::Y2026.params(name));
    let list_team = call(json!({"name": "list_team", "arguments": {}}));
    let nameless = call(json!({"arguments": {}}));
    let version = ("MCP-Protocol-Version", "2026-07-28");
    let cases: [Headed; 9] = [
        ("another method", &modern("tools/list"), discover(), MISMATCH),
        ("no method", &[version], discover(), MISMATCH),
        ("no version", &[("Mcp-Method", "server/discover")], discover(), MISMATCH),
        (
            "an older version",
            &[("MCP-Protocol-Version", "2025-11-25"), modern("server/discover")[1]],
            discover(),
            MISMATCH,
        ),
        ("no name", &modern("tools/call"), list_team.clone(), MISMATCH),
        (
            "another name",
            &[version, ("Mcp-Method", "tools/call"), ("Mcp-Name", "orchestrate")],
            list_team.clone(),
            MISMATCH,
        ),
        (
            "bad base64",
            &[version, ("Mcp-Method", "tools/call"), ("Mcp-Name", "=?base64?!?=")],
            list_team,
            MISMATCH,
        ),
        (
            "two methods",
            &[version, ("Mcp-Method", "server/discover"), ("Mcp-Method", "tools/list")],
            discover(),
            MISMATCH,
        ),
        ("a call without a name", &modern("tools/call"), nameless, refusal(&[200, 400], -32602, true)),
    ];
    for (what, headers, message, refusal) in &cases {
        refusal.check(what, &site.post(headers, message)?)?;
    }
    // What is no JSON by its own word is not read as JSON.
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"] {
        let headers = [[("Content-Type", kind), DECENT[1]], modern("server/discover")].concat();
        let answer = site.raw("POST", &headers, Some(discover().to_string().as_bytes()))?;
        ensure!([400, 415].contains(&answer.status), "a body of {kind}: {} {}", answer.status, answer.text());
    }
    Ok(cases.len() + 3)
}

/// Where a request says it goes to, and where it comes from.
fn places(site: &Site) -> Result<usize> {
    let address = site.served.address();
    let port = address.rsplit(':').next().unwrap_or_default();
    let own = |host: &str| format!("{host}:{port}");
    let foreign = [
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "evil.example:80",
        "127.0.0.2.nip.io",
        "localhostx",
        "xlocalhost",
        "[::1].evil.example",
        "user@localhost",
        "2130706433",
        "0x7f.1",
        "",
    ];
    let origins = [
        "http://evil.example",
        "https://localhost.evil.example",
        "http://127.0.0.1.evil.example",
        "null",
        "http://localhost@evil.example",
        "file://",
        "http://evil.example/http://localhost",
        "localhost",
        "",
    ];
    let ask = |host: &str, more: &[(&str, &str)]| {
        let headers = [&DECENT[..], &modern("server/discover"), more].concat();
        let mut connection = site.connect()?;
        connection.send(&request("POST", host, &headers, Some(discover().to_string().as_bytes())))?;
        connection.answer().with_context(|| format!("Host: {host} and {more:?}"))
    };
    for host in [own("localhost"), own("127.0.0.1"), own("[::1]"), own("LocalHost")] {
        let origin = format!("http://{host}");
        let answer = ask(&host, &[("Origin", &origin)])?;
        ensure!(answer.status == 200, "from and to {host}: {} {}", answer.status, answer.text());
    }
    let refused = |what: String, answer: &Answer| -> Result<()> {
        ensure!((400..500).contains(&answer.status), "{what}: {} {}", answer.status, answer.text());
        ensure!(!answer.text().contains("supportedVersions"), "{what} was answered: {}", answer.text());
        Ok(())
    };
    for host in foreign {
        let good = format!("http://{address}");
        refused(format!("Host: {host}, alone"), &ask(host, &[])?)?;
        refused(format!("Host: {host}, with a good Origin"), &ask(host, &[("Origin", &good)])?)?;
    }
    for origin in origins {
        let answer = ask(address, &[("Origin", origin)])?;
        refused(format!("Origin: {origin}"), &answer)?;
        ensure!(answer.status == 403, "Origin: {origin}: {} and not 403", answer.status);
    }
    for (first, second) in [(address, "evil.example"), ("evil.example", address), (address, address)] {
        refused(format!("Host: {first} and {second}"), &ask(first, &[("Host", second)])?)?;
    }
    Ok(2 * foreign.len() + origins.len() + 3)
}

fn methods(site: &Site) -> Result<usize> {
    let version = [("MCP-Protocol-Version", "2026-07-28"), ("Accept", "text/event-stream")];
    for method in ["GET", "DELETE", "PUT", "PATCH"] {
        let answer = site.raw(method, &version, None)?;
        ensure!(answer.status == 405, "{method} without a session: {} {}", answer.status, answer.text());
    }
    let unknown = [("Mcp-Session-Id", "nobody-has-this"), ("MCP-Protocol-Version", "2025-11-25")];
    for method in ["GET", "DELETE"] {
        let answer = site.raw(method, &[&unknown[..], &[("Accept", "text/event-stream")]].concat(), None)?;
        ensure!(answer.status == 404, "{method} of an unknown session: {} {}", answer.status, answer.text());
    }
    let listing = message(&json!(7), "tools/list", json!({}));
    let answer = site.post(&unknown, &listing)?;
    ensure!(answer.status == 404, "POST to an unknown session: {} {}", answer.status, answer.text());
    let answer = site.post(&unknown[1..], &listing)?;
    ensure!(answer.status == 400, "POST without a session: {} {}", answer.status, answer.text());
    Ok(8)
}

/// A body that is far too large is not kept, whether its length was told or not.
pub(super) fn outsized(site: &Site) -> Result<String> {
    let before = proc::memory_kib(site.served.pid(), "VmHWM")?;
    let length = OUTSIZED.to_string();
    let mut chunk = format!("{PIECE:x}\r\n").into_bytes();
    chunk.extend(std::iter::repeat_n(b' ', PIECE));
    chunk.extend(b"\r\n");
    let bare = vec![b' '; PIECE];
    let told = (("Content-Length", length.as_str()), bare, &b""[..]);
    for (header, piece, end) in [told, (("Transfer-Encoding", "chunked"), chunk, b"0\r\n\r\n")] {
        let headers = [&DECENT[..], &modern("server/discover"), &[header]].concat();
        let mut connection = site.connect()?;
        connection.send(&request("POST", site.served.address(), &headers, None))?;
        let mut sent = 0;
        while sent < OUTSIZED && connection.send(&piece).is_ok() {
            sent += PIECE;
        }
        let sent = if connection.send(end).is_ok() { sent } else { 0 };
        // A server may answer before all was sent, and the end of the connection overtake the answer.
        match connection.answer() {
            Ok(answer) => ensure!(answer.status == 413, "{header:?}: {} {}", answer.status, answer.text()),
            Err(error) => {
                ensure!(sent < OUTSIZED, "{header:?}: 64 MiB were taken and not answered: {error:#}")
            }
        }
    }
    let grown = proc::memory_kib(site.served.pid(), "VmHWM")?.saturating_sub(before);
    ensure!(grown <= GROWTH, "two outsized bodies took {grown} KiB of memory");
    Ok(format!("64 MiB twice at {:.1} MiB of memory", grown as f64 / 1024.0))
}
