//! Texts given as an argument, or on stdin.

use std::io::Read;

use cyberine_app::{Exit, Problem};

/// `given`, or what stdin holds where that is `-`: at most one byte more than `most`, so that what
/// is too long shows as such.
pub(crate) fn text(given: String, what: &str, most: usize) -> Result<String, Problem> {
    if given != "-" {
        return Ok(given);
    }
    let mut text = String::new();
    match std::io::stdin().lock().take(most as u64 + 1).read_to_string(&mut text) {
        Ok(_) => Ok(text),
        // Cut off within a character: too long it is in any case.
        Err(error) if error.kind() == std::io::ErrorKind::InvalidData => Err(Problem::new(
            Exit::Usage,
            format!("{what} on stdin is not UTF-8 text, or longer than {most} bytes"),
        )),
        Err(error) => Err(Problem::new(Exit::Usage, format!("{what} cannot be read from stdin: {error}"))),
    }
}
