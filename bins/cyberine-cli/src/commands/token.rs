//! `cyberine token`.

use cyberine_app::{Environment, Exit, HandedOut, Home, Name, NewToken, Problem, Tenant};
use cyberine_types::{Clock as _, SystemClock, Timestamp};
use serde_json::json;

use crate::args::{self, TokenCommand};
use crate::out::Out;
use crate::plain::escaped;

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// Makes a token and shows it, this once.
pub(crate) fn run(command: TokenCommand, environment: &Environment, out: &Out) -> Result<Exit, Problem> {
    let TokenCommand::New(args) = command;
    let write = args.write;
    let home = Home::resolve(environment)?;
    let made = read(args)?.hand_out()?;
    let file = if write { Some(made.keep(&home)?) } else { None };
    if out.is_json() {
        let HandedOut { token, digest, entry } = &made;
        let (token, digest) = (token.expose(), digest.to_string());
        out.json(&json!({ "token": token, "sha256": digest, "entry": entry, "file": file }));
        return Ok(Exit::Done);
    }
    if let Some(file) = file {
        out.line(made.token.expose());
        out.note(format_args!(
            "`{}` keeps its digest; a server that runs reads it at its next start",
            escaped(&file.display().to_string())
        ));
        return Ok(Exit::Done);
    }
    out.line("The token, shown this once:");
    out.line("");
    out.line(format_args!("  {}", made.token.expose()));
    out.line("");
    let file = home.config_file();
    out.line(format_args!("Its entry for {} (--write puts it there):", escaped(&file.display().to_string())));
    out.line("");
    for line in made.entry.lines() {
        out.line(escaped(line));
    }
    Ok(Exit::Done)
}

fn read(args: args::NewToken) -> Result<NewToken, Problem> {
    let args::NewToken { name, tenant, audiences, org_scope, days, write: _ } = args;
    let wrong = |what: &'static str| {
        move |why: cyberine_app::Misnamed| Problem::new(Exit::Usage, format!("the {what} {why}"))
    };
    let named = |what: &'static str, text: String| Name::try_from(text).map_err(wrong(what));
    let ends = |days: u32| Timestamp::from_unix_ms(SystemClock.now().unix_ms() + i64::from(days) * DAY_MS);
    Ok(NewToken {
        name: named("name", name)?,
        tenant: tenant.map(|text| Tenant::try_from(text).map_err(wrong("tenant"))).transpose()?,
        audiences: audiences.into_iter().map(|text| named("audience", text)).collect::<Result<_, _>>()?,
        org_scope: org_scope.map(|text| named("org scope", text)).transpose()?,
        expires: days.map(ends),
    })
}
