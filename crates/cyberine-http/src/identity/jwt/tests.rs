mod issuer;

use std::sync::Arc;
use std::time::Duration;

use cyberine_types::{Identity, Secret};
use serde_json::{Value, json};

use super::*;
use issuer::{AUDIENCE, ISSUER, Issuer, encoded, now};

fn rules() -> JwtRules {
    JwtRules {
        issuer: ISSUER.to_owned(),
        audience: AUDIENCE.to_owned(),
        algorithms: vec![SignatureAlgorithm::Rs256, SignatureAlgorithm::Es256, SignatureAlgorithm::EdDsa],
        scopes: Vec::new(),
        claims: Claims { user: "sub".to_owned(), tenant: None, audiences: None, org_scope: None },
        tenant: "acme".to_owned(),
        leeway: Duration::from_secs(10),
    }
}

fn jwt(issuer: &Arc<Issuer>) -> Jwt {
    Jwt::new(rules(), Arc::clone(issuer) as Arc<dyn KeySource>).unwrap()
}

async fn resolve(jwt: &Jwt, token: &str) -> Result<Arc<Identity>, Rejection> {
    admit(jwt, token).await.map(|admitted| admitted.identity)
}

async fn admit(jwt: &Jwt, token: &str) -> Result<Admission, Rejection> {
    let facts = TransportFacts {
        bearer: Some(Secret::new(token)),
        peer: "10.0.0.1:1".parse().unwrap(),
        is_forwarded: false,
    };
    jwt.resolve(&facts).await
}

/// Why `token` is refused.
async fn refused(jwt: &Jwt, token: &str) -> &'static str {
    match resolve(jwt, token).await {
        Err(Rejection::Invalid(why)) => why,
        other => panic!("{other:?}"),
    }
}

const UNAVAILABLE: &str = "the keys of the issuer cannot be had now";

fn unavailable(seconds: u64) -> Result<Arc<Identity>, Rejection> {
    Err(Rejection::Unavailable { what: UNAVAILABLE, after: Duration::from_secs(seconds) })
}

#[tokio::test]
async fn a_token_of_the_issuer_names_its_user() {
    let issuer = Issuer::new();
    let jwt = jwt(&issuer);
    for key in ["es", "ed"] {
        let identity = resolve(&jwt, &issuer.token(key, &json!({}))).await.unwrap();
        assert_eq!((identity.principal.tenant.as_str(), identity.principal.name.as_str()), ("acme", "ada"));
    }
    let identity = resolve(&jwt, issuer::RS256).await.unwrap();
    assert_eq!(identity.principal.name, "ada");
    let many = issuer.token("es", &json!({ "aud": ["https://other", AUDIENCE] }));
    assert!(resolve(&jwt, &many).await.is_ok());
    assert_eq!(issuer.fetched(), 1, "the keys are held");
}

#[tokio::test]
async fn a_token_that_is_not_meant_for_this_server_is_refused() {
    let issuer = Issuer::new();
    let jwt = jwt(&issuer);
    let cases = [
        (json!({ "aud": "https://other" }), "the token is for another audience"),
        (json!({ "aud": format!("{AUDIENCE}/") }), "the token is for another audience"),
        (json!({ "aud": [] }), "the token is for another audience"),
        (json!({ "aud": Value::Null }), "the token does not say whom it is for"),
        (json!({ "iss": "https://evil" }), "the token is of another issuer"),
        (json!({ "iss": format!("{ISSUER}/") }), "the token is of another issuer"),
        (json!({ "iss": [ISSUER, "https://evil"] }), "the token is of another issuer"),
        (json!({ "iss": Value::Null }), "the token does not say who issued it"),
        (json!({ "exp": now() - 60 }), "the token has expired"),
        (json!({ "exp": Value::Null }), "the token does not say when it expires"),
        (json!({ "nbf": now() + 60 }), "the token is not valid yet"),
        (json!({ "nbf": "soon" }), "a claim of the token has a wrong type"),
        (json!({ "sub": Value::Null }), "the token does not name a user"),
    ];
    for (changed, why) in cases {
        assert_eq!(refused(&jwt, &issuer.token("es", &changed)).await, why, "{changed}");
    }
    let early = issuer.token("es", &json!({ "exp": now() - 5, "nbf": now() + 5 }));
    assert!(resolve(&jwt, &early).await.is_ok(), "clocks may differ by the leeway");
}

#[tokio::test]
async fn who_is_let_in_is_so_until_the_token_expires() {
    let issuer = Issuer::new();
    let jwt = jwt(&issuer);
    for (expires, until_ms) in [
        (json!(4_102_444_800_u64), 4_102_444_810_000),
        (json!(4_102_444_800.5), 4_102_444_810_500),
        (json!(u64::MAX), i64::MAX),
    ] {
        let admitted = admit(&jwt, &issuer.token("es", &json!({ "exp": expires }))).await;
        let until = admitted.map(|admitted| admitted.until);
        assert_eq!(until, Ok(Some(Timestamp::from_unix_ms(until_ms))), "{expires}");
    }
}

#[tokio::test]
async fn a_token_does_not_choose_how_it_is_verified() {
    let issuer = Issuer::new();
    let jwt = jwt(&issuer);
    let claims = issuer.claims(&json!({}));
    for alg in ["none", "None", "NONE", ""] {
        for signature in ["", "AAAA"] {
            let token = format!("{}.{signature}", encoded(&json!({ "alg": alg, "kid": "es" }), &claims));
            assert_eq!(
                refused(&jwt, &token).await,
                "the token is no JWT that is signed with a known algorithm"
            );
        }
    }
    // The public key as the secret of an HMAC, in the forms a confused verifier may take it in.
    for secret in issuer.public_forms() {
        for kid in ["es", "ed", "rsa"] {
            let token = issuer.hmac(&json!({ "alg": "HS256", "kid": kid }), &claims, &secret);
            assert_eq!(
                refused(&jwt, &token).await,
                "the token is signed with an algorithm that does not count here"
            );
        }
    }
    // An algorithm that counts, and a key that is for another.
    for (alg, kid) in [("RS256", "es"), ("ES256", "rsa"), ("EdDSA", "es"), ("ES256", "ed")] {
        let token = issuer.signed("es", &json!({ "alg": alg, "kid": kid }), &claims);
        assert_eq!(refused(&jwt, &token).await, "the token is signed with a key its issuer does not publish");
    }
    assert_eq!(
        refused(&jwt, issuer::PS256).await,
        "the token is signed with an algorithm that does not count here",
        "it is not on the list, though the key could verify it"
    );
    // A key of its own in the header, or the address of one.
    let own = Issuer::new();
    let header =
        json!({ "alg": "ES256", "kid": "es", "jwk": own.jwk("es"), "jku": "http://127.0.0.1:9/keys" });
    assert_eq!(
        refused(&jwt, &own.signed("es", &header, &claims)).await,
        "the signature of the token does not fit"
    );
    let critical =
        issuer.signed("es", &json!({ "alg": "ES256", "kid": "es", "crit": ["x"], "x": 1 }), &claims);
    assert!(resolve(&jwt, &critical).await.is_err());
}

#[tokio::test]
async fn a_token_that_was_changed_or_is_none_is_refused() {
    let issuer = Issuer::new();
    let jwt = jwt(&issuer);
    let good = issuer.token("es", &json!({}));
    let other = issuer.token("es", &json!({ "sub": "root" }));
    let (head, tail) = good.rsplit_once('.').unwrap();
    let (other_head, _) = other.rsplit_once('.').unwrap();
    assert_eq!(
        refused(&jwt, &format!("{other_head}.{tail}")).await,
        "the signature of the token does not fit"
    );
    for bad in ["", ".", "..", "a.b", "a.b.c.d", "abc", head, &format!("{good}."), &format!("{head}.!!")] {
        assert!(matches!(resolve(&jwt, bad).await, Err(Rejection::Invalid(_))), "{bad}");
    }
    let facts = TransportFacts { bearer: None, peer: "10.0.0.1:1".parse().unwrap(), is_forwarded: false };
    assert_eq!(jwt.resolve(&facts).await, Err(Rejection::Missing));
}

#[tokio::test]
async fn a_token_needs_every_scope() {
    let issuer = Issuer::new();
    let scopes = vec!["mcp".to_owned(), "spend".to_owned()];
    let rules = JwtRules { scopes: scopes.clone(), ..rules() };
    let jwt = Jwt::new(rules, Arc::clone(&issuer) as Arc<dyn KeySource>).unwrap();
    for enough in
        [json!({ "scope": "a spend mcp" }), json!({ "scp": ["mcp", "spend"] }), json!({ "scp": "mcp spend" })]
    {
        assert!(resolve(&jwt, &issuer.token("es", &enough)).await.is_ok(), "{enough}");
    }
    for little in [
        json!({}),
        json!({ "scope": "mcp" }),
        json!({ "scope": "mcp,spend" }),
        json!({ "scope": ["mcp spend"] }),
    ] {
        let resolved = resolve(&jwt, &issuer.token("es", &little)).await;
        assert_eq!(resolved, Err(Rejection::Scope(scopes.clone())), "{little}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_name_of_a_key_is_a_name_and_worth_one_fetch_a_minute() {
    let issuer = Issuer::new();
    let jwt = jwt(&issuer);
    assert!(resolve(&jwt, &issuer.token("es", &json!({}))).await.is_ok());
    let claims = issuer.claims(&json!({}));
    for kid in [
        "../../etc/passwd",
        "/etc/passwd",
        "http://127.0.0.1:9/keys",
        "es'--",
        "%00",
        "es\0",
        "",
        &"x".repeat(4000),
    ] {
        let token = issuer.signed("es", &json!({ "alg": "ES256", "kid": kid }), &claims);
        assert_eq!(
            refused(&jwt, &token).await,
            "the token is signed with a key its issuer does not publish",
            "{kid}"
        );
    }
    assert_eq!(issuer.fetched(), 1, "no sooner than a minute after the first fetch");
    tokio::time::advance(Duration::from_secs(61)).await;
    let unknown = issuer.signed("es", &json!({ "alg": "ES256", "kid": "nobody" }), &claims);
    for _ in 0..100 {
        assert!(resolve(&jwt, &unknown).await.is_err());
    }
    assert_eq!(issuer.fetched(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_key_may_be_rotated_while_its_tokens_are_in_use() {
    let issuer = Issuer::new();
    let jwt = jwt(&issuer);
    let before = issuer.token("es", &json!({}));
    assert!(resolve(&jwt, &before).await.is_ok());
    tokio::time::advance(Duration::from_secs(61)).await;
    issuer.rotate();
    let after = issuer.token("es-2", &json!({}));
    assert!(resolve(&jwt, &after).await.is_ok(), "the new key is fetched for its first token");
    assert_eq!(
        refused(&jwt, &before).await,
        "the token is signed with a key its issuer does not publish",
        "the old key counts no more"
    );
}

#[tokio::test(start_paused = true)]
async fn a_key_that_was_withdrawn_counts_for_no_request_more_once_it_is_time_to_look() {
    let issuer = Issuer::new();
    let jwt = jwt(&issuer);
    let before = issuer.token("es", &json!({}));
    assert!(resolve(&jwt, &before).await.is_ok());
    issuer.rotate();
    issuer.delay(Duration::from_secs(3));
    tokio::time::advance(Duration::from_secs(10 * 60)).await;
    // Nor for one that comes while somebody else, who has gone since, has the keys fetched.
    assert!(tokio::time::timeout(Duration::from_secs(1), resolve(&jwt, &before)).await.is_err());
    assert_eq!(refused(&jwt, &before).await, "the token is signed with a key its issuer does not publish");
    assert_eq!(issuer.fetched(), 2);
}

#[tokio::test(start_paused = true)]
async fn keys_that_cannot_be_fetched_again_count_for_a_while() {
    let issuer = Issuer::new();
    let jwt = jwt(&issuer);
    let token = issuer.token("es", &json!({}));
    assert!(resolve(&jwt, &token).await.is_ok());
    issuer.break_down();
    tokio::time::advance(Duration::from_secs(11 * 60)).await;
    assert!(resolve(&jwt, &token).await.is_ok());
    let claims = issuer.claims(&json!({}));
    let unknown = issuer.signed("es", &json!({ "alg": "ES256", "kid": "nobody" }), &claims);
    tokio::time::advance(Duration::from_secs(61)).await;
    assert_eq!(resolve(&jwt, &unknown).await, unavailable(60), "it may be a new one");
    tokio::time::advance(Duration::from_secs(12)).await;
    assert_eq!(resolve(&jwt, &unknown).await, unavailable(48), "it is not asked for again before");
    tokio::time::advance(Duration::from_secs(12 * 60 * 60)).await;
    assert_eq!(resolve(&jwt, &token).await, unavailable(60));
    issuer.repair();
    tokio::time::advance(Duration::from_secs(61)).await;
    assert!(resolve(&jwt, &token).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn an_issuer_that_is_down_from_the_start_or_never_answers_lets_nobody_in() {
    let issuer = Issuer::new();
    issuer.break_down();
    let down = jwt(&issuer);
    assert_eq!(down.warm().await, Err(KeyError("it is down".to_owned())));
    let token = issuer.token("es", &json!({}));
    assert_eq!(resolve(&down, &token).await, unavailable(5));
    assert_eq!(issuer.fetched(), 1);
    issuer.repair();
    tokio::time::advance(Duration::from_secs(6)).await;
    assert!(resolve(&down, &token).await.is_ok(), "at first it is asked again soon");

    issuer.hang();
    let hung = jwt(&issuer);
    let (first, second) = tokio::join!(resolve(&hung, &token), resolve(&hung, &token));
    assert_eq!((first, second), (unavailable(5), unavailable(5)));
    assert_eq!(issuer.fetched(), 3, "both waited for one fetch");
    assert!(hung.warm().await.unwrap_err().to_string().contains("within 10 s"));
}

#[tokio::test(start_paused = true)]
async fn whoever_goes_away_does_not_take_the_fetch_along() {
    let issuer = Issuer::new();
    issuer.delay(Duration::from_secs(3));
    let jwt = jwt(&issuer);
    let token = issuer.token("es", &json!({}));
    assert!(tokio::time::timeout(Duration::from_secs(1), resolve(&jwt, &token)).await.is_err());
    tokio::time::advance(Duration::from_secs(3)).await;
    tokio::task::yield_now().await;
    assert!(resolve(&jwt, &token).await.is_ok());
    assert_eq!(issuer.fetched(), 1);
}

#[test]
fn a_key_set_is_bounded_and_only_keys_that_verify_count() {
    let issuer = Issuer::new();
    let set = |keys: &Value| json!({ "keys": keys }).to_string().into_bytes();
    let es = issuer.jwk("es");
    let with = |name: &str, value: Value| {
        let mut jwk = es.clone();
        jwk[name] = value;
        jwk
    };
    assert_eq!(keys_in(&set(&json!([es.clone(), issuer.jwk("ed"), issuer.jwk("rsa")]))), Ok(3));
    let useless = [
        json!({ "kty": "oct", "kid": "s", "k": "c2VjcmV0" }),
        with("use", json!("enc")),
        with("key_ops", json!(["sign"])),
        with("alg", json!("HS256")),
        with("alg", json!("ES384")),
        with("crv", json!("P-521")),
        with("kty", json!("RSA")),
        with("x", json!("%%%")),
        with("x", json!(7)),
        with("kid", json!("x".repeat(300))),
        json!(7),
    ];
    for bad in &useless {
        assert!(keys_in(&set(&json!([bad]))).is_err(), "{bad}");
        assert_eq!(keys_in(&set(&json!([bad, es]))), Ok(1), "{bad} spoils nothing");
    }
    for bad in [&b""[..], b"[]", b"{}", b"{\"keys\":{}}", b"{\"keys\":[]}", b"<html>"] {
        assert!(keys_in(bad).is_err(), "{}", String::from_utf8_lossy(bad));
    }
    let many: Vec<Value> = (0..1_000).map(|at| with("kid", json!(at.to_string()))).collect();
    assert_eq!(keys_in(&set(&json!(many))), Ok(64));
    let huge = vec![b' '; LARGEST_KEY_SET + 1];
    assert!(keys_in(&huge).unwrap_err().to_string().contains("longer than 256 KiB"));
    let deep = format!("{{\"keys\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(keys_in(deep.as_bytes()).is_err());
}

#[test]
fn rules_by_which_anybody_could_get_in_are_refused() {
    let refused = |change: fn(&mut JwtRules)| {
        let mut rules = rules();
        change(&mut rules);
        rules.check().unwrap_err()
    };
    assert_eq!(refused(|rules| rules.issuer.clear()), RuleError::Empty("issuer"));
    assert_eq!(refused(|rules| rules.audience = " ".to_owned()), RuleError::Empty("audience"));
    assert_eq!(refused(|rules| rules.algorithms.clear()), RuleError::Empty("algorithms"));
    assert_eq!(refused(|rules| rules.leeway = Duration::from_secs(301)), RuleError::Leeway);
    assert_eq!(refused(|rules| rules.scopes = vec!["a b".to_owned()]), RuleError::Scope("a b".to_owned()));
    assert!(matches!(refused(|rules| rules.tenant = "a/b".to_owned()), RuleError::Tenant { .. }));
    for bad in ["none", "HS256", "HS384", "HS512", "rs256", "ES512", ""] {
        assert!(bad.parse::<SignatureAlgorithm>().is_err(), "{bad}");
    }
}
