//! On a terminal: colours, and a picture that is drawn over.

use std::process::Command;

use crate::place::{Place, shell};

/// What `arguments` prints on a terminal, which `script` of util-linux provides; `None`, said
/// plainly, where it is not installed.
fn on_terminal(place: &Place, arguments: &str, no_color: Option<&str>) -> Option<String> {
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
    Some(String::from_utf8(command.output().unwrap().stdout).unwrap())
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
