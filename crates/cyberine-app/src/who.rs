//! Who is calling: the profile of the process, and what the configuration says of callers over HTTP.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cyberine_http::identity::{Claims, Either, Fixed, Jwt, JwtRules, KeySource, Resolver, Token, TokenTable};
use cyberine_types::Identity;

use crate::config::{AccessConfig, ConfigSource, IdentityConfig, IdentityMode, JwtConfig, TokenConfig};
use crate::environment::Environment;
use crate::exit::Exit;
use crate::home::Home;
use crate::keys::{KeyFile, KeyUrl};
use crate::problem::Problem;

/// Who started this process: the profile in the home's configuration, else the user of the system. That
/// user it is, too, where the file cannot be read or must not be: then it says nothing, and whatever
/// needs it says why.
///
/// # Errors
/// Where the file is wrong, for then it may name somebody else.
pub(crate) fn started(environment: &Environment) -> Result<Identity, Problem> {
    let user = environment.user();
    // Without a home there is no configuration; what needs one says so.
    let Ok(home) = Home::resolve(environment) else { return Ok(Identity::local(user)) };
    let access = match ConfigSource::read(&home.config_file()) {
        Ok(Some(source)) => AccessConfig::of(&source).map_err(|error| {
            let Problem { exit, message, .. } = Problem::from(error);
            Problem::new(exit, format!("{message}; put it right and start the server again"))
        })?,
        Ok(None) => AccessConfig::default(),
        Err(error) => {
            tracing::warn!("calls are recorded as those of `local/{user}`: {}", Problem::from(error).message);
            AccessConfig::default()
        }
    };
    Ok(access.identity.profile(user))
}

/// Who is who over HTTP.
pub(crate) struct Callers {
    pub(crate) resolver: Arc<dyn Resolver>,
    /// The tokens of an issuer, where they count.
    pub(crate) jwt: Option<Arc<Jwt>>,
}

impl Callers {
    /// What the configuration of `home` says.
    ///
    /// # Errors
    /// Where it says nothing, for then nobody could be told from anybody else; or what cannot be.
    pub(crate) fn of(access: &AccessConfig, environment: &Environment, home: &Home) -> Result<Self, Problem> {
        let identity = &access.identity;
        if identity.mode == Some(IdentityMode::Fixed) {
            if access.http.allow_remote || access.http.public_url.is_some() {
                return Err(wrong(
                    "`[identity] mode = \"fixed\"` makes everybody who can connect one user, so it goes with \
                     neither `[http] allow_remote` nor `public_url`: hand out tokens instead \
                     (`cyberine token new NAME`)",
                ));
            }
            let fixed = Fixed::new(identity.profile(environment.user()));
            return Ok(Self { resolver: Arc::new(fixed), jwt: None });
        }
        let table = (!identity.token.is_empty())
            .then(|| table(identity, environment.user()).map(|table| Arc::new(table) as Arc<dyn Resolver>))
            .transpose()?;
        let jwt =
            identity.jwt.as_ref().map(|jwt| tokens_of(jwt, identity, home).map(Arc::new)).transpose()?;
        let of_jwt = jwt.clone().map(|jwt| jwt as Arc<dyn Resolver>);
        let resolver = match (table, of_jwt) {
            (Some(table), Some(jwt)) => Arc::new(Either::new(table, jwt)) as Arc<dyn Resolver>,
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => return Err(nobody(home)),
        };
        Ok(Self { resolver, jwt })
    }
}

/// The tokens that were handed out, where the system calls its user `user`.
fn table(identity: &IdentityConfig, user: &str) -> Result<TokenTable, Problem> {
    let (profile, tenant) = (identity.profile(user), identity.tenant());
    let is_nowhere = |token: &&TokenConfig| token.tenant.is_none() && identity.tenant.is_none();
    let mut nowhere = identity.token.iter().filter(is_nowhere);
    if let Some(token) = nowhere.find(|token| token.identity(tenant).principal == profile.principal) {
        let name = token.name.as_str();
        return Err(wrong(&format!(
            "the token of `{name}` names no tenant, so whoever brings it would be the user of this machine, \
             `{tenant}/{name}`: give its `[[identity.token]]` a `tenant`"
        )));
    }
    let tokens = identity.token.iter().map(|token| Token {
        digest: token.sha256.0,
        identity: Arc::new(token.identity(tenant)),
        expires: token.expires,
    });
    Ok(TokenTable::new(tokens.collect()))
}

/// The tenant of whoever brings a token of the issuer, where no claim names it.
fn tenant<'a>(jwt: &'a JwtConfig, identity: &'a IdentityConfig) -> Result<&'a str, Problem> {
    if jwt.tenant.is_none() && jwt.tenant_claim.is_none() && identity.tenant.is_none() {
        return Err(wrong(
            "`[identity.jwt]` names no tenant, so whoever its issuer calls as this machine calls its user would \
             be that user: set `tenant` or `tenant_claim` in it, or `tenant` in `[identity]`",
        ));
    }
    Ok(jwt.tenant.as_ref().map_or(identity.tenant(), |tenant| tenant.as_str()))
}

fn tokens_of(jwt: &JwtConfig, identity: &IdentityConfig, home: &Home) -> Result<Jwt, Problem> {
    let source: Arc<dyn KeySource> = match (&jwt.jwks_url, &jwt.jwks_file) {
        (Some(url), _) => {
            let keys = KeyUrl::at(url);
            Arc::new(keys.map_err(|why| wrong(&format!("`[identity.jwt] jwks_url`: {why}")))?)
        }
        (None, Some(file)) => Arc::new(KeyFile(home.directory().join(file))),
        (None, None) => return Err(wrong("`[identity.jwt]` needs `jwks_url` or `jwks_file`")),
    };
    let rules = JwtRules {
        issuer: jwt.issuer.clone(),
        audience: jwt.audience.clone(),
        algorithms: jwt.algorithms.iter().map(|algorithm| algorithm.0).collect(),
        scopes: jwt.scopes.clone(),
        claims: Claims {
            user: jwt.user_claim.clone(),
            tenant: jwt.tenant_claim.clone(),
            audiences: jwt.audiences_claim.clone(),
            org_scope: jwt.org_scope_claim.clone(),
        },
        tenant: tenant(jwt, identity)?.to_owned(),
        leeway: Duration::from_secs(jwt.leeway_secs),
    };
    Jwt::new(rules, source).map_err(|why| wrong(&format!("[identity.jwt]: {why}")))
}

fn wrong(message: &str) -> Problem {
    Problem::new(Exit::Configuration, message)
}

fn nobody(home: &Home) -> Problem {
    let file = shown(&home.config_file());
    wrong(&format!(
        "over HTTP somebody has to say who is calling, and `{file}` does not: hand out tokens \
         (`cyberine token new NAME`), name the issuer of tokens (`[identity.jwt]`), or, where everybody \
         on this machine may be you, set `mode = \"fixed\"` in `[identity]`"
    ))
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> IdentityConfig {
        AccessConfig::of(&ConfigSource::of("c.toml", text)).unwrap().identity
    }

    fn refused<T>(result: Result<T, Problem>) -> Option<String> {
        let problem = result.err()?;
        assert_eq!(problem.exit, Exit::Configuration);
        Some(problem.message)
    }

    #[test]
    fn nobody_is_the_user_of_this_machine_by_a_token_that_does_not_say_so() {
        let token = format!("[[identity.token]]\nname = \"ada\"\nsha256 = \"{}\"\n", "ab".repeat(32));
        let said = refused(table(&read(&token), "ada")).unwrap();
        assert!(said.contains("`local/ada`") && said.contains("`tenant`"), "{said}");
        assert!(refused(table(&read(&format!("[identity]\nuser = \"ada\"\n{token}")), "ben")).is_some());
        for (text, user) in [
            (token.clone(), "ben"),
            (format!("[identity]\ntenant = \"acme\"\n{token}"), "ada"),
            (format!("{token}tenant = \"acme\"\n"), "ada"),
            (format!("{token}tenant = \"local\"\n"), "ada"),
        ] {
            assert_eq!(refused(table(&read(&text), user)), None, "{text}");
        }
    }

    #[test]
    fn an_issuer_has_a_tenant() {
        let jwt = "[identity.jwt]\nissuer = \"i\"\naudience = \"a\"\njwks_file = \"k\"\n";
        let of = |text: &str| {
            let identity = read(text);
            tenant(identity.jwt.as_ref().unwrap(), &identity).map(str::to_owned)
        };
        assert!(refused(of(jwt)).unwrap().contains("`tenant_claim`"));
        assert_eq!(of(&format!("{jwt}tenant = \"acme\"\n")).ok().as_deref(), Some("acme"));
        assert_eq!(of(&format!("[identity]\ntenant = \"acme\"\n{jwt}")).ok().as_deref(), Some("acme"));
        assert!(of(&format!("{jwt}tenant_claim = \"org\"\n")).is_ok());
    }
}
