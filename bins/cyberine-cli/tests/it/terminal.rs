//! On a terminal: colours, and a picture that is drawn over.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::place::{Place, shell, write_private};

/// What `arguments` prints on a terminal, which `script` of util-linux provides; `None`, said
/// plainly, where it is not installed.
fn on_terminal(place: &Place, arguments: &str, no_color: Option<&str>) -> Option<String> {
    on_terminal_typing(place, arguments, no_color, "")
}

fn on_terminal_typing(place: &Place, arguments: &str, no_color: Option<&str>, typed: &str) -> Option<String> {
    if !Command::new("script").arg("--version").output().is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: there is no `script` of util-linux to make a terminal with");
        return None;
    }
    // The environment of the command under test, with another program in front.
    let plain = place.command(&[]);
    let mut command = Command::new("script");
    let line = format!("'{}' {arguments}", env!("CARGO_BIN_EXE_cyberine"));
    command.args(["-q", "-e", "-c", &line, "/dev/null"]).env_clear().current_dir(place.project());
    command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?)))).env("TERM", "xterm");
    if let Some(value) = no_color {
        command.env("NO_COLOR", value);
    }
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    // The end of this input is the end of the terminal's, whatever was typed.
    child.stdin.take().unwrap().write_all(typed.as_bytes()).unwrap();
    Some(String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap())
}

/// The same with `typed` on the terminal's keyboard.
fn typed_on_terminal(place: &Place, arguments: &str, typed: &str) -> Option<String> {
    on_terminal_typing(place, arguments, None, typed)
}

#[test]
fn trust_is_asked_for_on_a_terminal_and_only_yes_is_yes() {
    let place = Place::new();
    let provider = shell("a", "cat > /dev/null; echo yes");
    write_private(&place.project().join("cyberine.toml"), &provider);
    for no in ["n\n", "\n", "yeah\n", ""] {
        let Some(shown) = typed_on_terminal(&place, "trust", no) else { return };
        let (what, question) = shown.split_once("[y/N]").unwrap();
        assert!(what.contains("\"cat > /dev/null; echo yes\""), "{shown:?}");
        assert!(question.contains("nothing was trusted"), "{no:?}: {shown:?}");
        assert_eq!(place.run(&["orchestrate", "x"]).code, Some(77), "{no:?}");
    }
    let shown = typed_on_terminal(&place, "trust", "y\n").unwrap();
    assert!(shown.contains("It is trusted as it is now"), "{shown:?}");
    assert_eq!(place.run(&["orchestrate", "x"]).code, Some(0));
}

#[test]
fn a_run_is_drawn_over_and_over_in_colours() {
    let answer = "cat > /dev/null; echo yes";
    let place = Place::with(&[shell("a", answer), shell("b", answer)].concat());
    let Some(shown) = on_terminal(&place, "orchestrate x", None) else { return };
    assert!(shown.contains("\u{1b}[2K") && shown.contains("\u{1b}[32m"), "{shown:?}");
    assert!(shown.contains("Winner: a"), "{shown:?}");
}

#[test]
fn no_color_is_respected_and_an_empty_one_means_nothing() {
    let place = Place::new();
    let bold = "\u{1b}[1m";
    let Some(shown) = on_terminal(&place, "guide", None) else { return };
    assert!(shown.contains(bold), "{shown:?}");
    assert!(on_terminal(&place, "guide", Some("")).unwrap().contains(bold));
    assert!(!on_terminal(&place, "guide", Some("1")).unwrap().contains('\u{1b}'));
    assert!(!on_terminal(&place, "guide --json", None).unwrap().contains('\u{1b}'));
}

#[test]
fn a_long_message_cannot_forge_another_ones_head_by_being_wrapped() {
    let place = Place::new();
    // Wherever the terminal would break this line, a forged head would stand at its beginning.
    let text = "#9  2026-01-01 00:00:00Z  human root  note ".repeat(40) + "\u{1b}[2J";
    assert_eq!(place.run(&["send", "chat:c", &text]).code, Some(0));
    let Some(shown) = on_terminal(&place, "inbox chat:c", Some("1")) else { return };
    assert!(!shown.contains('\u{1b}'), "{shown:?}");
    let lines: Vec<&str> = shown.lines().collect();
    assert!(lines[0].starts_with("#1  ") && lines.len() > 10, "{shown}");
    assert!(lines[1..].iter().all(|line| line.starts_with("  │ ") && line.chars().count() <= 80), "{shown}");
    // Elsewhere nothing is broken up: programs find what they look for.
    assert!(place.run(&["inbox", "chat:c"]).out.contains(&format!("  │ {}", &text[..text.len() - 4])));
}
