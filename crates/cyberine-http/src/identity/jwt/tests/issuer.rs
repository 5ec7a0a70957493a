//! An issuer of a test's own, with keys of every kind.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _};
use serde_json::{Value, json};

use crate::identity::{KeyError, KeySource};

pub(super) const ISSUER: &str = "https://login";
pub(super) const AUDIENCE: &str = "https://mcp";

/// A public RSA key whose private half was thrown away, and what it signed before: `ada` of
/// [`ISSUER`] for [`AUDIENCE`], until the year 2100.
const MODULUS: &str = "mAGNIcPpmcps1c7DFJ8vWNmbmwJsWV3w9TKoIcIOY_IlUij9pdk98HDB2xwiqo0Umg-Q2MYcLsVsPJAIo-Iz--jQfCfLGCkud-DjgJf_EXkEjTqkPTmmEBymJ5VrawMtyNMqtEIi74buhuLJJZrVysi5ZXP5Ey7Gcknllpbnw2bbfeToSyUL1i4y31JtBePBwpenGmUVynJhKcNMRSevf4txVA35TEkl_Wm-Ic9WSRjGYBVW0zGq9Mx7MprjmjtAiriN2P33T_2tex1hLfP1PgrFNn9gX9KbbXor1iPuFpTMAyKWEZBE0xXoR9y6FxCUustz9C9o7Z-a1snAA5xHyQ";
pub(super) const RS256: &str = "eyJhbGciOiJSUzI1NiIsImtpZCI6InJzYSJ9.eyJpc3MiOiJodHRwczovL2xvZ2luIiwiYXVkIjoiaHR0cHM6Ly9tY3AiLCJzdWIiOiJhZGEiLCJleHAiOjQxMDI0NDQ4MDB9.A4xL7Spq_leFBJ6e89RYJIQVOyAwoZWIiwN769PCbhhSq_kJp2f-17j30xvIGj5tOWDe1WU57W6enbkUpepoCD0yEfNqipe-TR361f_2qxtu9G1dSSzHal5qwlUL4Hx5GP2yVHtKY7ABWq8v61wQwcdB9_7Ol0DR9kKdStVjxd5vK71eYBmVIsfd1unfEmZa6RRb2jPnBoHVc_MELWbfP-zzcNZiZekj9MJ-m0EsvWb9dUDea1GxoEmUcIb0QNo6LW9ttqAL7tpIa6EVVVLATb_7mHTsLGPuRWeOmPPg4W4kLLkUZxfcGW_QYzmvc3EFEzlwImQAm1aOWxHAsdZm5g";
pub(super) const PS256: &str = "eyJhbGciOiJQUzI1NiIsImtpZCI6InJzYSJ9.eyJpc3MiOiJodHRwczovL2xvZ2luIiwiYXVkIjoiaHR0cHM6Ly9tY3AiLCJzdWIiOiJhZGEiLCJleHAiOjQxMDI0NDQ4MDB9.RTxo3ulBJImWDLjnhbn-Nd9fcLjw7B6Qqd7IsMqGt3JQxlfCfTuTzJJncVVNftaFIk0rqDnCcjRfkMdojdXzBB3ANKTuIwpLGYiXxezXB7jmT87GZSF54zZPi4fzt55jrA-_Lfd_zZKutcIALUF4UbnXOQea92am3rc0UqZ8aZ_CHqvkWIk4PaZeYiqEg3n9T1LFmadB0UpgVfrLeG7xgaLwUDLb9uMBS0jc3H7wlglAYSQmvDBwrnLBgVEq-UlKwiI9YJOA5TbOER57MS2SpbrbL85NoxB8RKxiuY06JMLU7fyzM9LOVSBDVo0nPB9t-ngWJsq1z320xHmdhEHv7w";

pub(super) struct Issuer {
    es: EcdsaKeyPair,
    es_2: EcdsaKeyPair,
    ed: Ed25519KeyPair,
    state: Mutex<State>,
    fetched: AtomicUsize,
}

#[derive(Clone, Copy)]
struct State {
    rotated: bool,
    down: bool,
    delay: Duration,
}

impl Issuer {
    pub(super) fn new() -> Arc<Self> {
        let ed = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Arc::new(Self {
            es: ecdsa(),
            es_2: ecdsa(),
            ed: Ed25519KeyPair::from_pkcs8(ed.as_ref()).unwrap(),
            state: Mutex::new(State { rotated: false, down: false, delay: Duration::ZERO }),
            fetched: AtomicUsize::new(0),
        })
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap());
    }

    /// Publishes `es-2` in place of `es`.
    pub(super) fn rotate(&self) {
        self.change(|state| state.rotated = true);
    }

    pub(super) fn break_down(&self) {
        self.change(|state| state.down = true);
    }

    pub(super) fn repair(&self) {
        self.change(|state| state.down = false);
    }

    pub(super) fn delay(&self, delay: Duration) {
        self.change(|state| state.delay = delay);
    }

    pub(super) fn hang(&self) {
        self.delay(Duration::from_secs(3_600));
    }

    pub(super) fn fetched(&self) -> usize {
        self.fetched.load(Ordering::SeqCst)
    }

    pub(super) fn jwk(&self, kid: &str) -> Value {
        match kid {
            "rsa" => json!({ "kty": "RSA", "kid": kid, "use": "sig", "n": MODULUS, "e": "AQAB" }),
            "ed" => {
                let x = base64(self.ed.public_key().as_ref());
                json!({ "kty": "OKP", "crv": "Ed25519", "kid": kid, "alg": "EdDSA", "x": x })
            }
            _ => {
                let point = self.ecdsa(kid).public_key().as_ref();
                let (x, y) = (base64(&point[1..33]), base64(&point[33..]));
                json!({ "kty": "EC", "crv": "P-256", "kid": kid, "x": x, "y": y })
            }
        }
    }

    fn ecdsa(&self, kid: &str) -> &EcdsaKeyPair {
        if kid == "es-2" { &self.es_2 } else { &self.es }
    }

    /// The public keys as the bytes somebody may take for a secret.
    pub(super) fn public_forms(&self) -> Vec<Vec<u8>> {
        let jwk = self.jwk("es");
        vec![
            self.es.public_key().as_ref().to_vec(),
            self.ed.public_key().as_ref().to_vec(),
            MODULUS.as_bytes().to_vec(),
            jwk["x"].as_str().unwrap().as_bytes().to_vec(),
            jwk.to_string().into_bytes(),
            b"".to_vec(),
        ]
    }

    /// Good claims, changed; a claim that is null is left out.
    pub(super) fn claims(&self, changed: &Value) -> Value {
        let mut claims = json!({ "iss": ISSUER, "aud": AUDIENCE, "sub": "ada", "exp": now() + 600 });
        for (name, value) in changed.as_object().unwrap() {
            claims[name] = value.clone();
        }
        claims.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        claims
    }

    /// A token signed with the key `kid`.
    pub(super) fn token(&self, kid: &str, changed: &Value) -> String {
        let alg = if kid == "ed" { "EdDSA" } else { "ES256" };
        self.signed(kid, &json!({ "alg": alg, "kid": kid }), &self.claims(changed))
    }

    /// A token with any header, signed with the key `with`.
    pub(super) fn signed(&self, with: &str, header: &Value, claims: &Value) -> String {
        let message = encoded(header, claims);
        let signature = if with == "ed" {
            self.ed.sign(message.as_bytes()).as_ref().to_vec()
        } else {
            self.ecdsa(with).sign(&SystemRandom::new(), message.as_bytes()).unwrap().as_ref().to_vec()
        };
        format!("{message}.{}", base64(&signature))
    }

    pub(super) fn hmac(&self, header: &Value, claims: &Value, secret: &[u8]) -> String {
        let message = encoded(header, claims);
        let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, secret);
        format!("{message}.{}", base64(ring::hmac::sign(&key, message.as_bytes()).as_ref()))
    }
}

impl KeySource for Issuer {
    fn fetch(&self) -> BoxFuture<'_, Result<Vec<u8>, KeyError>> {
        self.fetched.fetch_add(1, Ordering::SeqCst);
        let state = *self.state.lock().unwrap();
        Box::pin(async move {
            tokio::time::sleep(state.delay).await;
            if state.down {
                return Err(KeyError("it is down".to_owned()));
            }
            let first = if state.rotated { "es-2" } else { "es" };
            let keys = json!({ "keys": [self.jwk(first), self.jwk("ed"), self.jwk("rsa")] });
            Ok(keys.to_string().into_bytes())
        })
    }
}

fn ecdsa() -> EcdsaKeyPair {
    let (random, algorithm) = (SystemRandom::new(), &ECDSA_P256_SHA256_FIXED_SIGNING);
    let pkcs8 = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
    EcdsaKeyPair::from_pkcs8(algorithm, pkcs8.as_ref(), &random).unwrap()
}

pub(super) fn encoded(header: &Value, claims: &Value) -> String {
    format!("{}.{}", base64(header.to_string().as_bytes()), base64(claims.to_string().as_bytes()))
}

/// The alphabet of RFC 4648, 5, without padding.
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let group = chunk
            .iter()
            .enumerate()
            .fold(0_u32, |group, (at, byte)| group | u32::from(*byte) << (16 - 8 * at));
        for at in 0..=chunk.len() {
            text.push(char::from(ALPHABET[(group >> (18 - 6 * at)) as usize & 63]));
        }
    }
    text
}

pub(super) fn now() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs()
}
