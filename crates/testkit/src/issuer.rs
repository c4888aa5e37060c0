//! An issuer of tokens that publishes what the test says: discovery and keys over real sockets, and tokens signed by
//! another hand than the one that checks them.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use aws_lc_rs::encoding::AsDer as _;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    self, ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _,
    RsaEncoding, RsaKeyPair,
};
use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{HeaderName, HeaderValue, StatusCode};
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// How the issuer meets whoever asks for its keys.
#[derive(Clone, Debug)]
pub enum Published {
    /// With the documents that it should have.
    Keys,
    /// With this status and body, and a header perhaps.
    Answer(u16, String, Option<(HeaderName, HeaderValue)>),
    /// Not at all: the connection stays open.
    Hang,
}

#[derive(Debug)]
struct State {
    keys: Vec<Value>,
    published: Published,
    asked: Vec<String>,
}

/// An issuer on a free port of this machine.
#[derive(Debug)]
pub struct Issuer {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    _serving: JoinSet<()>,
}

impl Issuer {
    /// Starts one that publishes these keys.
    pub async fn start(keys: &[&SigningKey]) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
        let address = listener.local_addr().expect("the port just bound");
        let state = Arc::new(Mutex::new(State { keys: Vec::new(), published: Published::Keys, asked: Vec::new() }));
        let routes = Router::new().fallback({
            let state = Arc::clone(&state);
            move |request: Request| answer(request, address, Arc::clone(&state))
        });
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            // Only the end of the test ends it.
            let _ = axum::serve(listener, routes).await;
        });
        let issuer = Self { address, state, _serving: serving };
        issuer.publish(keys);
        issuer
    }

    /// Its name.
    pub fn name(&self) -> String {
        format!("http://{}", self.address)
    }

    /// From now on publishes these keys and no others.
    pub fn publish(&self, keys: &[&SigningKey]) {
        self.publish_documents(keys.iter().map(|key| key.published()).collect());
    }

    /// The same with keys as they are written.
    pub fn publish_documents(&self, keys: Vec<Value>) {
        self.with(|state| (state.keys, state.published) = (keys, Published::Keys));
    }

    /// From now on meets whoever asks so.
    pub fn meet(&self, published: Published) {
        self.with(|state| state.published = published);
    }

    /// The paths that it was asked for since this was last called.
    pub fn asked(&self) -> Vec<String> {
        self.with(|state| std::mem::take(&mut state.asked))
    }

    /// A token signed by a key, with these claims over the usual ones: null takes one away.
    pub fn token(&self, key: &SigningKey, now_seconds: i64, claims: Value) -> String {
        key.sign(json!({}), &self.claims(now_seconds, claims))
    }

    /// The usual claims, of a token that lasts an hour, with others over them.
    pub fn claims(&self, now_seconds: i64, over: Value) -> Value {
        let usual = json!({
            "iss": self.name(),
            "aud": "courant",
            "sub": "ada@example.com",
            "iat": now_seconds,
            "nbf": now_seconds,
            "exp": now_seconds + 3600,
            "scope": "openid control-plane:admin",
        });
        merged(usual, over)
    }

    fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

async fn answer(request: Request, address: SocketAddr, state: Arc<Mutex<State>>) -> Response {
    let path = request.uri().path().to_owned();
    let (keys, published) = {
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        state.asked.push(path.clone());
        (state.keys.clone(), state.published.clone())
    };
    let issuer = format!("http://{address}");
    let (status, body, header) = match (published, path.as_str()) {
        (Published::Answer(status, body, header), _) => (status, body, header),
        (Published::Hang, _) => std::future::pending().await,
        (Published::Keys, "/.well-known/openid-configuration") => {
            (200, json!({ "issuer": issuer, "jwks_uri": format!("{issuer}/keys") }).to_string(), None)
        }
        (Published::Keys, "/keys") => (200, json!({ "keys": keys }).to_string(), None),
        (Published::Keys, _) => (404, String::new(), None),
    };
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = StatusCode::from_u16(status).expect("a status");
    response.headers_mut().extend(header);
    response
}

fn merged(usual: Value, over: Value) -> Value {
    let (Value::Object(mut all), Value::Object(over)) = (usual, over) else { panic!("claims are an object") };
    all.extend(over);
    all.into_iter().filter(|(_, value)| !value.is_null()).collect::<Map<_, _>>().into()
}

enum Pair {
    Rsa(RsaKeyPair, &'static dyn RsaEncoding),
    Ec(EcdsaKeyPair, &'static str),
    Ed(Ed25519KeyPair),
}

/// A key that signs tokens.
pub struct SigningKey {
    id: String,
    algorithm: &'static str,
    pair: Pair,
}

impl SigningKey {
    /// A new key for an algorithm: `RS256`, `RS384`, `RS512`, `PS256`, `PS384`, `PS512`, `ES256`, `ES384` or `EdDSA`.
    pub fn generate(id: &str, algorithm: &'static str) -> Self {
        let pair = match algorithm {
            "RS256" => rsa(&signature::RSA_PKCS1_SHA256),
            "RS384" => rsa(&signature::RSA_PKCS1_SHA384),
            "RS512" => rsa(&signature::RSA_PKCS1_SHA512),
            "PS256" => rsa(&signature::RSA_PSS_SHA256),
            "PS384" => rsa(&signature::RSA_PSS_SHA384),
            "PS512" => rsa(&signature::RSA_PSS_SHA512),
            "ES256" => Pair::Ec(EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).expect("a key"), "P-256"),
            "ES384" => Pair::Ec(EcdsaKeyPair::generate(&ECDSA_P384_SHA384_FIXED_SIGNING).expect("a key"), "P-384"),
            "EdDSA" => Pair::Ed(Ed25519KeyPair::generate().expect("a key")),
            other => panic!("no key for {other}"),
        };
        Self { id: id.to_owned(), algorithm, pair }
    }

    /// Its public half as an issuer publishes it; RFC 7517.
    pub fn published(&self) -> Value {
        let own = match &self.pair {
            Pair::Rsa(pair, _) => {
                let public = pair.public_key();
                json!({
                    "kty": "RSA",
                    "n": encoded(public.modulus().big_endian_without_leading_zero()),
                    "e": encoded(public.exponent().big_endian_without_leading_zero()),
                })
            }
            Pair::Ec(pair, curve) => {
                // An uncompressed point: a mark and two halves.
                let (x, y) = pair.public_key().as_ref()[1..].split_at(pair.public_key().as_ref().len() / 2);
                json!({ "kty": "EC", "crv": curve, "x": encoded(x), "y": encoded(y) })
            }
            Pair::Ed(pair) => json!({ "kty": "OKP", "crv": "Ed25519", "x": encoded(pair.public_key().as_ref()) }),
        };
        merged(json!({ "kid": self.id, "use": "sig", "alg": self.algorithm }), own)
    }

    /// Its public half as some would misuse it: the bytes of its DER form.
    pub fn public_der(&self) -> Vec<u8> {
        match &self.pair {
            Pair::Rsa(pair, _) => pair.public_key().as_der().expect("its DER form").as_ref().to_vec(),
            Pair::Ec(pair, _) => pair.public_key().as_der().expect("its DER form").as_ref().to_vec(),
            Pair::Ed(pair) => pair.public_key().as_ref().to_vec(),
        }
    }

    /// A token with these claims, and with these fields over the usual header's: null takes one away.
    pub fn sign(&self, header: Value, claims: &Value) -> String {
        let header = merged(json!({ "alg": self.algorithm, "typ": "JWT", "kid": self.id }), header);
        let signed = format!("{}.{}", encoded(header.to_string().as_bytes()), encoded(claims.to_string().as_bytes()));
        let signature = self.signature(signed.as_bytes());
        format!("{signed}.{}", encoded(&signature))
    }

    fn signature(&self, signed: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match &self.pair {
            Pair::Rsa(pair, encoding) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(*encoding, &random, signed, &mut signature).expect("a signature");
                signature
            }
            Pair::Ec(pair, _) => pair.sign(&random, signed).expect("a signature").as_ref().to_vec(),
            Pair::Ed(pair) => pair.sign(signed).as_ref().to_vec(),
        }
    }
}

fn rsa(encoding: &'static dyn RsaEncoding) -> Pair {
    Pair::Rsa(RsaKeyPair::generate(KeySize::Rsa2048).expect("a key"), encoding)
}

/// Bytes as tokens write them.
pub fn encoded(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}
