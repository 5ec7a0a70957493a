//! The real command line, with runs in real processes.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "tests stop at the first surprise, and start the program under test as a shell would"
)]

mod configuration;
mod decisions;
mod demo;
mod install;
mod judging;
mod leaving;
mod mail;
mod mailbox_files;
mod misfits;
mod orchestrate;
mod place;
mod probing;
mod race;
mod rounds;
mod sampling;
mod spending;
mod terminal;
mod watching;
