//! Standard Webhooks' symmetric signature, version `v1`.
//!
//! The key is the decoded bytes, never the text. It must never be printed, so it has no `Debug`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

const PREFIX: &str = "whsec_";

/// A signing key.
pub(super) struct Secret(Vec<u8>);

impl Secret {
    /// Reads `whsec_…`; none unless it is canonical base64 of 24 to 64 bytes.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let key = STANDARD.decode(text.strip_prefix(PREFIX)?).ok()?;
        (24..=64).contains(&key.len()).then_some(Self(key))
    }

    /// These bytes as they are shown and stored.
    pub(super) fn text(key: &[u8]) -> String {
        format!("{PREFIX}{}", STANDARD.encode(key))
    }

    /// The value of `webhook-signature`. `id` must hold no `.`, or two texts could have one signature.
    pub(super) fn sign(&self, id: &str, timestamp: i64, body: &[u8]) -> String {
        debug_assert!(!id.contains('.'), "a UUID");
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes keys of any length");
        mac.update(format!("{id}.{timestamp}.").as_bytes());
        mac.update(body);
        format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_published_vector_comes_out() {
        let secret = Secret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        assert_eq!(
            secret.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, br#"{"test": 2432232314}"#),
            "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
        );
    }

    #[test]
    fn a_secret_of_another_form_is_not_one() {
        let text = |bytes: usize| Secret::text(&vec![7; bytes]);
        assert!(Secret::parse(&text(24)).is_some() && Secret::parse(&text(64)).is_some());
        for wrong in [
            text(23),
            text(65),
            text(32).replace("whsec_", ""),
            text(32).replace("whsec_", "WHSEC_"),
            text(32).replace('=', ""),
            text(32) + "\n",
            text(25).replace("Bw==", "Bx=="),
            format!("whsec_{}", "-_".repeat(16)),
            "whsec_".into(),
            String::new(),
        ] {
            assert!(Secret::parse(&wrong).is_none(), "{wrong:?}");
        }
    }

    proptest! {
        #[test]
        fn the_reference_library_makes_the_same_signature(
            key in prop::collection::vec(any::<u8>(), 24..=64), time in 0_i64..4_102_444_800, body in ".*"
        ) {
            let text = Secret::text(&key);
            let reference = standardwebhooks::Webhook::new(&text).unwrap().sign("0199", time, body.as_bytes()).unwrap();
            prop_assert_eq!(Secret::parse(&text).unwrap().sign("0199", time, body.as_bytes()), reference);
        }
    }
}
