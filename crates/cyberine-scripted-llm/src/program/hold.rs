//! How a program waits for its release.

use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::time::Duration;

use super::ProgramError;

/// How often a path is looked at that is not there yet.
const LOOK: Duration = Duration::from_millis(20);

/// Waits until `name` is released: an absolute path by what is there, any other name by the server
/// at `control`.
pub(super) fn wait(name: &str, control: Option<&str>, role: &str) -> Result<(), ProgramError> {
    if name.starts_with('/') {
        return Ok(wait_for_path(Path::new(name))?);
    }
    let Some(url) = control else { return Err(ProgramError::NoControl { name: name.to_owned() }) };
    let failed = |detail: String| ProgramError::Control { url: url.to_owned(), detail };
    let status = ask(url, name, role).map_err(|error| failed(error.to_string()))?;
    if status.starts_with("HTTP/1.1 200") { Ok(()) } else { Err(failed(format!("it answered `{status}`"))) }
}

/// A FIFO is waited for by reading it to its end, anything else by its being there.
fn wait_for_path(path: &Path) -> std::io::Result<()> {
    loop {
        match std::fs::metadata(path) {
            Ok(found) if found.file_type().is_fifo() => {
                let mut sink = Vec::new();
                return File::open(path)?.read_to_end(&mut sink).map(drop);
            }
            Ok(_) => return Ok(()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => std::thread::sleep(LOOK),
            Err(error) => return Err(error),
        }
    }
}

/// Asks the server for the hold and returns the status line, which comes with the release.
fn ask(url: &str, name: &str, role: &str) -> std::io::Result<String> {
    let bad = || std::io::Error::other("it is not of the form `http://HOST:PORT`");
    let host = url.strip_prefix("http://").ok_or_else(bad)?.trim_end_matches('/');
    let mut stream = TcpStream::connect(host)?;
    let role = role.trim_start_matches("scripted/");
    write!(
        stream,
        "GET /control/hold/{name}?role={role} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n"
    )?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let answer = String::from_utf8_lossy(&answer);
    Ok(answer.lines().next().unwrap_or_default().to_owned())
}
