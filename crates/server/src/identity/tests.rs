//! Tokens against real issuers, on a driven clock: which count, which do not, and what happens when an issuer changes its
//! keys or is away.

use std::time::Duration;

use courant_api::Scope;
use courant_core::access::{Ceiling, Purpose};
use courant_testkit::issuer::encoded;
use courant_testkit::{DrivenClock, Issuer, Published, SigningKey};
use http::header;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::*;
use crate::clock;
use crate::outbound::{Egress, OutboundOptions};

const HOUR: Duration = Duration::from_hours(1);

fn outbound() -> Outbound {
    Outbound::new(Egress::default(), OutboundOptions::default()).unwrap()
}

fn settings(issuer: &Issuer) -> IssuerSettings {
    IssuerSettings { issuer: issuer.name(), audience: "courant".into(), jwks: None, tenant: None }
}

fn seconds() -> i64 {
    clock::now().micros() / 1_000_000
}

/// An issuer with one key, whoever accepts its tokens, and the clock.
struct Setting {
    clock: DrivenClock,
    issuer: Issuer,
    key: SigningKey,
    issuers: Issuers,
}

impl Setting {
    async fn new() -> Self {
        let (clock, key) = (DrivenClock::take(), SigningKey::generate("first", "ES256"));
        let issuer = Issuer::start(&[&key]).await;
        let issuers = Issuers::new(vec![settings(&issuer)], &outbound());
        Self { clock, issuer, key, issuers }
    }

    /// A token that was never seen before, signed by this key.
    fn token(&self, key: &SigningKey) -> String {
        self.issuer.token(key, seconds(), json!({ "jti": crate::ids::new_id() }))
    }

    async fn verify(&self, text: &str) -> Result<Arc<Token>, Unverified> {
        self.issuers.verify(text, clock::now()).await
    }

    async fn refused(&self, text: &str) -> Refused {
        match self.verify(text).await {
            Err(Unverified::Refused(refused)) => refused,
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_token_says_who_until_when_how_far_and_what_for() {
    let s = Setting::new().await;
    let approval = "019a2f51-d37a-7535-b849-b0ca43e91613";
    let read = Ceiling::Scope(Some(Scope::Read));
    for (claims, ceiling, purpose, channel) in [
        (json!({}), Ceiling::Scope(Some(Scope::Admin)), None, None),
        (json!({ "scope": "control-plane:read" }), read, None, None),
        (json!({ "scope": null, "scp": ["control-plane:read", "other"] }), read, None, None),
        (json!({ "scope": null, "scp": "control-plane:read" }), read, None, None),
        (json!({ "scope": null }), Ceiling::Scope(None), None, None),
        (json!({ "scope": "control-plane:read", "acr": "channel:slack" }), read, None, Some("slack")),
        (json!({ "scope": "control-plane:read", "acr": "channel:No such" }), read, None, None),
        (
            json!({ "scope": "control-plane:decide control-plane:admin", "purpose_ref": format!("approval:{approval}") }),
            Ceiling::Decision,
            Some(Purpose::Approval(approval.parse().unwrap())),
            None,
        ),
        (json!({ "scope": "control-plane:decide" }), Ceiling::Decision, Some(Purpose::Unnamed), None),
    ] {
        let token = s.verify(&s.issuer.token(&s.key, seconds(), claims.clone())).await.unwrap();
        assert_eq!((token.issuer.as_str(), token.subject.as_str()), (s.issuer.name().as_str(), "ada@example.com"));
        assert_eq!(token.expires_at.micros(), (seconds() + 3600 + LEEWAY_SECONDS) * 1_000_000);
        assert_eq!((token.ceiling, token.purpose, token.channel.as_deref()), (ceiling, purpose, channel), "{claims}");
    }
}

#[tokio::test]
async fn every_algorithm_with_a_public_key_counts() {
    let s = Setting::new().await;
    let names = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"];
    let keys = names.map(|name| SigningKey::generate(name, name));
    s.issuer.publish(&keys.iter().collect::<Vec<_>>());
    for key in &keys {
        s.verify(&s.token(key)).await.unwrap();
    }
}

#[tokio::test]
async fn a_token_that_is_not_good_is_refused() {
    let s = Setting::new().await;
    let now = seconds();
    let claims = |over: Value| s.issuer.claims(now, over);
    let with = |over: Value| s.issuer.token(&s.key, now, over);
    let header = |over: Value| s.key.sign(over, &claims(json!({})));
    let good = with(json!({}));
    let (signed, signature) = good.rsplit_once('.').unwrap();
    let unsigned = |header: Value, signature: &[u8]| {
        let parts = [header, claims(json!({}))].map(|part| encoded(part.to_string().as_bytes()));
        format!("{}.{}.{}", parts[0], parts[1], encoded(signature))
    };
    let text = |text: &str| text.to_owned();
    let long = "x".repeat(256);
    s.verify(&good).await.unwrap();
    for (name, token, expected) in [
        ("nothing", text(""), Refused::NoToken),
        ("two parts", text(signed), Refused::NoToken),
        ("four parts", format!("{good}.{signature}"), Refused::NoToken),
        ("five parts, as encrypted ones have", text("e30.e30.e30.e30.e30"), Refused::NoToken),
        ("no base64", good.replace('.', ".!"), Refused::NoToken),
        ("no JSON", format!("{}.{}.{signature}", encoded(b"{"), encoded(b"[]")), Refused::NoToken),
        ("too long", with(json!({ "more": "x".repeat(9000) })), Refused::NoToken),
        ("no signature", format!("{signed}."), Refused::Signature),
        ("another's signature", format!("{signed}.{}", encoded(&[7; 64])), Refused::Signature),
        (
            "a changed claim",
            {
                let changed = encoded(claims(json!({ "sub": "root" })).to_string().as_bytes());
                format!("{}.{changed}.{signature}", good.split('.').next().unwrap())
            },
            Refused::Signature,
        ),
        (
            "a key of the same name",
            SigningKey::generate("first", "ES256").sign(json!({}), &claims(json!({}))),
            Refused::Signature,
        ),
        ("a key that is not there", header(json!({ "kid": "second" })), Refused::UnknownKey),
        ("a key for another algorithm", header(json!({ "alg": "RS256" })), Refused::UnknownKey),
        ("no algorithm", unsigned(json!({ "alg": "none" }), b""), Refused::NoToken),
        ("an empty header", unsigned(json!({}), b"x"), Refused::NoToken),
        ("a shared secret", unsigned(json!({ "alg": "HS256", "kid": "first" }), &[0; 32]), Refused::Algorithm),
        (
            "a public key as a secret",
            {
                use hmac::{Hmac, KeyInit as _, Mac as _};
                let outline = unsigned(json!({ "alg": "HS256", "kid": "first" }), b"");
                let outline = outline.trim_end_matches('.');
                let mut mac = Hmac::<Sha256>::new_from_slice(&s.key.public_der()).unwrap();
                mac.update(outline.as_bytes());
                format!("{outline}.{}", encoded(&mac.finalize().into_bytes()))
            },
            Refused::Algorithm,
        ),
        ("a demanded extension", header(json!({ "crit": ["exp"] })), Refused::Critical),
        ("no issuer", with(json!({ "iss": null })), Refused::Claim("iss")),
        ("an issuer of a wrong type", with(json!({ "iss": 7 })), Refused::Claim("iss")),
        ("another issuer", with(json!({ "iss": "https://login.example.com" })), Refused::UnknownIssuer),
        ("almost the issuer", with(json!({ "iss": format!("{}/", s.issuer.name()) })), Refused::UnknownIssuer),
        ("no audience", with(json!({ "aud": null })), Refused::Claim("set")),
        ("an empty audience", with(json!({ "aud": [] })), Refused::Audience),
        ("another audience", with(json!({ "aud": ["courant2", "Courant"] })), Refused::Audience),
        ("no subject", with(json!({ "sub": null })), Refused::Claim("set")),
        ("an empty subject", with(json!({ "sub": "" })), Refused::Claim("sub")),
        ("too long a subject", with(json!({ "sub": long })), Refused::Claim("sub")),
        ("no end", with(json!({ "exp": null })), Refused::Claim("set")),
        ("an end in words", with(json!({ "exp": "tomorrow" })), Refused::Claim("set")),
        ("an end before time", with(json!({ "exp": -1 })), Refused::Claim("exp")),
        ("an end after time", with(json!({ "exp": 1e30 })), Refused::Claim("exp")),
        ("an end gone by", with(json!({ "exp": now - LEEWAY_SECONDS })), Refused::Expired),
        ("a beginning to come", with(json!({ "nbf": now + LEEWAY_SECONDS + 2 })), Refused::NotYet),
        ("made in time to come", with(json!({ "iat": now + LEEWAY_SECONDS + 2 })), Refused::NotYet),
        ("a beginning in words", with(json!({ "nbf": "now" })), Refused::Claim("set")),
    ] {
        assert_eq!(s.refused(&token).await, expected, "{name}");
    }
    assert_eq!(s.issuer.asked().len(), 2, "tokens made the server ask more than once");
}

#[tokio::test]
async fn clocks_may_differ_a_little() {
    let s = Setting::new().await;
    let now = seconds();
    for claims in [
        json!({ "exp": now - LEEWAY_SECONDS + 2 }),
        json!({ "nbf": now + LEEWAY_SECONDS - 1, "iat": now + LEEWAY_SECONDS - 1 }),
        json!({ "nbf": null, "iat": null, "aud": ["other", "courant"] }),
        json!({ "exp": f64::from(u32::MAX) + 0.5 }),
    ] {
        s.verify(&s.issuer.token(&s.key, now, claims.clone())).await.unwrap_or_else(|e| panic!("{claims}: {e}"));
    }
}

#[tokio::test]
async fn a_token_ends_when_it_says_though_it_was_good_before() {
    let s = Setting::new().await;
    let token = s.issuer.token(&s.key, seconds(), json!({ "exp": seconds() + 60 }));
    for _ in 0..3 {
        s.verify(&token).await.unwrap();
        s.clock.pass(Duration::from_secs(29)).await;
    }
    s.clock.pass(Duration::from_secs(4)).await;
    assert_eq!(s.refused(&token).await, Refused::Expired);
}

#[tokio::test]
async fn new_keys_count_when_tokens_name_them_and_old_ones_end() {
    let s = Setting::new().await;
    let before = s.token(&s.key);
    s.verify(&before).await.unwrap();
    let second = SigningKey::generate("second", "RS256");
    s.issuer.publish(&[&second]);
    // Asked a moment ago: a bearer cannot make the server ask as often as they like.
    s.issuer.asked();
    for _ in 0..5 {
        assert_eq!(s.refused(&s.token(&second)).await, Refused::UnknownKey);
    }
    assert!(s.issuer.asked().is_empty());
    s.clock.pass(Duration::from_secs(10)).await;
    s.verify(&s.token(&second)).await.unwrap();
    assert_eq!(s.issuer.asked(), ["/.well-known/openid-configuration", "/keys"]);
    assert_eq!(s.refused(&s.token(&s.key)).await, Refused::UnknownKey, "a key that was withdrawn");
    s.clock.pass(VERIFIED).await;
    assert_eq!(s.refused(&before).await, Refused::UnknownKey, "a token of the key that was withdrawn");
}

#[tokio::test]
async fn a_key_that_is_withdrawn_is_noticed_without_a_new_one() {
    let s = Setting::new().await;
    s.verify(&s.token(&s.key)).await.unwrap();
    s.issuer.publish(&[]);
    s.clock.pass(Duration::from_mins(9)).await;
    s.verify(&s.token(&s.key)).await.unwrap();
    s.clock.pass(Duration::from_mins(1)).await;
    assert_eq!(s.refused(&s.token(&s.key)).await, Refused::UnknownKey);
}

#[tokio::test]
async fn an_issuer_that_is_away_leaves_its_last_keys_for_a_day() {
    let s = Setting::new().await;
    s.verify(&s.token(&s.key)).await.unwrap();
    s.issuer.meet(Published::Answer(503, String::new(), None));
    for _ in 0..23 {
        s.clock.pass(HOUR).await;
        s.verify(&s.token(&s.key)).await.unwrap();
    }
    s.clock.pass(HOUR).await;
    for _ in 0..3 {
        // The first asks; the others are told without asking.
        assert!(matches!(s.verify(&s.token(&s.key)).await, Err(Unverified::NoKeys(_))));
    }
    s.issuer.publish(&[&s.key]);
    s.clock.pass(Duration::from_secs(10)).await;
    s.verify(&s.token(&s.key)).await.unwrap();
}

#[tokio::test]
async fn whatever_an_issuer_answers_costs_one_bounded_wait_and_is_over_when_it_is_well() {
    let s = Setting::new().await;
    let name = s.issuer.name();
    let answer = |body: Value| Published::Answer(200, body.to_string(), None);
    let elsewhere = Some((header::LOCATION, "https://example.com/".parse().unwrap()));
    for (published, why) in [
        (Published::Answer(500, "{}".into(), None), "it answered 500"),
        (Published::Answer(404, String::new(), None), "it answered 404"),
        (Published::Answer(302, String::new(), elsewhere), "it answered 302"),
        (Published::Answer(200, "<html>".into(), None), "its discovery document is none"),
        (answer(json!({ "issuer": name })), "its discovery document is none"),
        (
            answer(json!({ "issuer": "https://other.example", "jwks_uri": name })),
            "its discovery document is another issuer's",
        ),
        (answer(json!({ "issuer": name, "jwks_uri": "keys" })), "its jwks_uri is no URL"),
        (answer(json!({ "issuer": name, "jwks_uri": "http://example.com/keys" })), "its jwks_uri is not https"),
        (answer(json!({ "issuer": name, "jwks_uri": name, "more": "x".repeat(300_000) })), "its document is too long"),
        // The same document is read as keys.
        (answer(json!({ "issuer": name, "jwks_uri": name, "keys": 7 })), "its document is no set of keys"),
    ] {
        s.issuer.meet(published);
        s.issuer.asked();
        for why in [why, "it was asked a moment ago, in vain"] {
            match s.verify(&s.token(&s.key)).await {
                Err(Unverified::NoKeys(error)) => assert_eq!(error.to_string(), why),
                other => panic!("{why}: {other:?}"),
            }
        }
        assert!(s.issuer.asked().len() <= 2, "{why}");
        s.clock.pass(Duration::from_secs(10)).await;
    }
    s.issuer.publish(&[&s.key]);
    s.verify(&s.token(&s.key)).await.unwrap();
}

#[tokio::test]
async fn an_issuer_that_hangs_is_given_up_and_asked_once_for_all_who_wait() {
    let s = Arc::new(Setting::new().await);
    s.issuer.meet(Published::Hang);
    let mut waiting = JoinSet::new();
    for _ in 0..50 {
        let s = Arc::clone(&s);
        waiting.spawn(async move { s.verify(&s.token(&s.key)).await });
    }
    while s.issuer.asked().is_empty() {
        tokio::task::yield_now().await;
    }
    s.clock.pass(Duration::from_secs(5)).await;
    while let Some(one) = waiting.join_next().await {
        assert!(matches!(one.unwrap(), Err(Unverified::NoKeys(_))));
    }
    assert!(s.issuer.asked().is_empty(), "more than one asked");
    s.issuer.publish(&[&s.key]);
    s.clock.pass(Duration::from_secs(5)).await;
    s.verify(&s.token(&s.key)).await.unwrap();
}

#[tokio::test]
async fn of_what_an_issuer_publishes_only_what_can_be_used_counts() {
    let s = Setting::new().await;
    let (second, nameless) = (SigningKey::generate("second", "ES256"), SigningKey::generate("third", "EdDSA"));
    let mut for_encryption = s.key.published();
    for_encryption["use"] = "enc".into();
    let mut without_name = nameless.published();
    without_name.as_object_mut().unwrap().remove("kid");
    let secret = json!({ "kty": "oct", "kid": "first", "alg": "HS256", "k": "c2VjcmV0" });
    let broken = json!({ "kty": "EC", "crv": "P-256", "kid": "broken", "x": "AA", "y": 7 });
    let unknown = json!({ "kty": "AKP", "kid": "new", "alg": "ML-DSA-44", "pub": "AA" });
    s.issuer.publish_documents(vec![
        json!(7),
        secret,
        broken,
        unknown,
        for_encryption,
        second.published(),
        without_name,
    ]);
    s.verify(&s.token(&second)).await.unwrap();
    assert_eq!(s.refused(&s.token(&s.key)).await, Refused::UnknownKey, "a key for encryption");
    let plain = json!({ "kid": null });
    let claims = s.issuer.claims(seconds(), json!({}));
    s.verify(&nameless.sign(plain.clone(), &claims)).await.expect("the only key for its algorithm");
    s.verify(&second.sign(plain.clone(), &claims)).await.expect("the only key for its algorithm");
    s.issuer.publish(&[&s.key, &second]);
    s.clock.pass(Duration::from_mins(10)).await;
    s.verify(&s.token(&second)).await.unwrap();
    let claims = s.issuer.claims(seconds(), json!({}));
    assert_eq!(s.refused(&second.sign(plain, &claims)).await, Refused::UnknownKey, "one of two without a name");
}

#[tokio::test]
async fn each_issuer_has_its_own_keys_audience_and_tenant() {
    let _clock = DrivenClock::take();
    let (ours, theirs) = (SigningKey::generate("first", "ES256"), SigningKey::generate("first", "ES256"));
    let (one, other) = (Issuer::start(&[&ours]).await, Issuer::start(&[&theirs]).await);
    let tenant = TenantId(crate::ids::new_id());
    let with_keys = Url::parse(&format!("{}/keys", other.name())).unwrap();
    let second =
        IssuerSettings { issuer: other.name(), audience: "theirs".into(), jwks: Some(with_keys), tenant: Some(tenant) };
    let issuers = Issuers::new(vec![settings(&one), second], &outbound());
    let verify = async |text: String| issuers.verify(&text, clock::now()).await.is_ok();
    assert!(verify(one.token(&ours, seconds(), json!({}))).await);
    assert!(!verify(one.token(&theirs, seconds(), json!({}))).await, "a key of another issuer");
    assert!(!verify(other.token(&theirs, seconds(), json!({}))).await, "an audience of another issuer");
    assert!(verify(other.token(&theirs, seconds(), json!({ "aud": "theirs" }))).await);
    assert_eq!(other.asked(), ["/keys"], "no discovery where the keys are configured");
    assert!(issuers.may_speak_for(&one.name(), tenant) && issuers.may_speak_for(&other.name(), tenant));
    assert!(!issuers.may_speak_for(&other.name(), TenantId(crate::ids::new_id())));
    assert!(!issuers.may_speak_for("https://example.com", tenant));
}
