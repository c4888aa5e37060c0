//! Sealing: how a secret is stored so that only the ring opens it, and only in its own row.
//!
//! Every secret has a key of its own, wrapped by a key of the ring, so that rotation rewraps keys and need not touch
//! the data. Both layers are bound to tenant and integration: an envelope moved to another row does not open.
//!
//! Layout: version (1), length of the key id (1), key id, nonce (24), wrapped data key (48), nonce (24), sealed data.

use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{KeyInit, XChaCha20Poly1305, XNonce};
use courant_api::{IntegrationId, TenantId};
use zeroize::Zeroizing;

use super::{KeyRing, random};

const VERSION: u8 = 1;
const NONCE_BYTES: usize = 24;
const TAG_BYTES: usize = 16;
const KEY_BYTES: usize = 32;
const WRAPPED_BYTES: usize = KEY_BYTES + TAG_BYTES;

/// Whose secret it is. The envelope opens for nobody else.
#[derive(Clone, Copy, Debug)]
pub struct SealContext {
    /// The tenant.
    pub org: TenantId,
    /// The integration.
    pub integration: IntegrationId,
}

/// An envelope that does not open.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// It was cut or is no envelope.
    #[error("stored secret is damaged")]
    Malformed,
    /// A later version wrote it.
    #[error("stored secret has the unknown format {0}")]
    UnknownVersion(u8),
    /// The ring lacks the key that sealed it.
    #[error("stored secret needs the encryption key `{0}`, which the key ring lacks")]
    UnknownKey(String),
    /// It was changed, or belongs to another row.
    #[error("stored secret does not open here: it was changed or belongs to another integration")]
    Refused,
}

impl KeyRing {
    /// Seals a secret for this row with the first key of the ring.
    pub fn seal(&self, context: &SealContext, plaintext: &[u8]) -> Vec<u8> {
        let (key_id, key) = self.first();
        let data_key = Zeroizing::new(random::<KEY_BYTES>());
        let mut envelope = vec![VERSION, u8::try_from(key_id.len()).expect("a key id has at most 64 bytes")];
        envelope.extend(key_id.as_bytes());
        encrypt_onto(&mut envelope, key, &context.binding("wrapped key", key_id), data_key.as_slice());
        encrypt_onto(&mut envelope, &data_key, &context.binding("data", key_id), plaintext);
        envelope
    }

    /// Opens what [`KeyRing::seal`] sealed for the same row.
    pub fn open(&self, context: &SealContext, envelope: &[u8]) -> Result<Zeroizing<Vec<u8>>, OpenError> {
        let parts = Parts::of(envelope)?;
        let key = self.find(parts.key_id).ok_or_else(|| OpenError::UnknownKey(parts.key_id.to_owned()))?;
        let data_key = decrypt(key, parts.wrap_nonce, &context.binding("wrapped key", parts.key_id), parts.wrapped)?;
        let data_key = <&[u8; KEY_BYTES]>::try_from(data_key.as_slice()).map_err(|_| OpenError::Malformed)?;
        decrypt(data_key, parts.data_nonce, &context.binding("data", parts.key_id), parts.data)
    }

    /// The same secret sealed with the first key of the ring; none when it is already.
    pub fn reseal(&self, context: &SealContext, envelope: &[u8]) -> Result<Option<Vec<u8>>, OpenError> {
        if Parts::of(envelope)?.key_id == self.first().0 {
            return Ok(None);
        }
        Ok(Some(self.seal(context, &self.open(context, envelope)?)))
    }
}

impl SealContext {
    /// What each layer is bound to: format, purpose, row and key. No field can be mistaken for part of its neighbour,
    /// since only the last one has no fixed length.
    fn binding(&self, purpose: &'static str, key_id: &str) -> Vec<u8> {
        let mut bytes = format!("courant integration secret v{VERSION} {purpose}\0").into_bytes();
        bytes.extend(self.org.uuid().as_bytes());
        bytes.extend(self.integration.uuid().as_bytes());
        bytes.extend(key_id.as_bytes());
        bytes
    }
}

struct Parts<'a> {
    key_id: &'a str,
    wrap_nonce: &'a [u8; NONCE_BYTES],
    wrapped: &'a [u8],
    data_nonce: &'a [u8; NONCE_BYTES],
    data: &'a [u8],
}

impl<'a> Parts<'a> {
    fn of(envelope: &'a [u8]) -> Result<Self, OpenError> {
        let (&version, rest) = envelope.split_first().ok_or(OpenError::Malformed)?;
        if version != VERSION {
            return Err(OpenError::UnknownVersion(version));
        }
        Self::after_version(rest).ok_or(OpenError::Malformed)
    }

    fn after_version(rest: &'a [u8]) -> Option<Self> {
        let (&id_bytes, rest) = rest.split_first()?;
        let (key_id, rest) = rest.split_at_checked(usize::from(id_bytes))?;
        let (wrap_nonce, rest) = rest.split_first_chunk()?;
        let (wrapped, rest) = rest.split_at_checked(WRAPPED_BYTES)?;
        let (data_nonce, data) = rest.split_first_chunk()?;
        Some(Self { key_id: std::str::from_utf8(key_id).ok()?, wrap_nonce, wrapped, data_nonce, data })
    }
}

fn encrypt_onto(envelope: &mut Vec<u8>, key: &[u8; KEY_BYTES], binding: &[u8], plaintext: &[u8]) {
    let nonce = random::<NONCE_BYTES>();
    let sealed = XChaCha20Poly1305::new(key.into())
        .encrypt(&XNonce::from(nonce), Payload { msg: plaintext, aad: binding })
        .expect("a secret is far shorter than what the cipher takes");
    envelope.extend(nonce);
    envelope.extend(sealed);
}

fn decrypt(
    key: &[u8; KEY_BYTES],
    nonce: &[u8; NONCE_BYTES],
    binding: &[u8],
    sealed: &[u8],
) -> Result<Zeroizing<Vec<u8>>, OpenError> {
    XChaCha20Poly1305::new(key.into())
        .decrypt(&XNonce::from(*nonce), Payload { msg: sealed, aad: binding })
        .map(Zeroizing::new)
        .map_err(|_| OpenError::Refused)
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn row(org: u128, integration: u128) -> SealContext {
        SealContext { org: Uuid::from_u128(org).into(), integration: Uuid::from_u128(integration).into() }
    }

    #[test]
    fn what_is_sealed_anew_opens_with_the_first_key_alone() {
        let (old, new) =
            ("old:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", "new:AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=");
        let [before, both, after] =
            [old.to_owned(), format!("{new},{old}"), new.to_owned()].map(|r| KeyRing::parse(&r).unwrap());
        let sealed = before.seal(&row(1, 2), b"secret");
        assert_eq!(before.reseal(&row(1, 2), &sealed), Ok(None));
        let anew = both.reseal(&row(1, 2), &sealed).unwrap().unwrap();
        assert_eq!(both.reseal(&row(1, 2), &anew), Ok(None));
        assert_eq!(after.open(&row(1, 2), &anew).unwrap().as_slice(), b"secret");
        assert_eq!(both.reseal(&row(1, 3), &sealed), Err(OpenError::Refused));
        assert_eq!(after.reseal(&row(1, 2), &sealed), Err(OpenError::UnknownKey("old".into())));
    }

    #[test]
    fn what_was_sealed_opens_in_its_own_row() {
        let ring = KeyRing::generate();
        for plaintext in [b"".as_slice(), b"xoxb-secret", &[7; 5000]] {
            let envelope = ring.seal(&row(1, 2), plaintext);
            assert_eq!(ring.open(&row(1, 2), &envelope).unwrap().as_slice(), plaintext);
        }
    }

    #[test]
    fn an_envelope_does_not_open_in_another_row() {
        let ring = KeyRing::generate();
        let envelope = ring.seal(&row(1, 2), b"secret");
        for other in [row(1, 3), row(3, 2), row(2, 1)] {
            assert_eq!(ring.open(&other, &envelope), Err(OpenError::Refused));
        }
    }

    #[test]
    fn any_changed_or_missing_byte_is_refused() {
        let ring = KeyRing::generate();
        let envelope = ring.seal(&row(1, 2), b"secret");
        for at in 0..envelope.len() {
            let mut changed = envelope.clone();
            changed[at] ^= 1;
            assert!(ring.open(&row(1, 2), &changed).is_err(), "byte {at} changed");
            assert!(ring.open(&row(1, 2), &envelope[..at]).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn the_envelope_shows_nothing_of_the_secret_and_never_repeats() {
        let ring = KeyRing::generate();
        let (one, two) = (ring.seal(&row(1, 2), b"xoxb-secret"), ring.seal(&row(1, 2), b"xoxb-secret"));
        assert!(!one.windows(4).any(|w| w == b"xoxb"));
        assert_ne!(one, two);
    }

    #[test]
    fn a_missing_key_and_a_later_format_are_named() {
        let (ring, other) = (KeyRing::generate(), KeyRing::generate());
        let mut envelope = ring.seal(&row(1, 2), b"secret");
        let key_id = ring.check_values()[0].0.clone();
        assert_eq!(other.open(&row(1, 2), &envelope), Err(OpenError::UnknownKey(key_id)));
        envelope[0] = 2;
        assert_eq!(ring.open(&row(1, 2), &envelope), Err(OpenError::UnknownVersion(2)));
    }

    #[test]
    fn an_older_key_of_the_ring_still_opens_what_it_sealed() {
        let old = KeyRing::parse(&format!("old:{}", "A".repeat(43) + "=")).unwrap();
        let envelope = old.seal(&row(1, 2), b"secret");
        let both = KeyRing::parse(&format!("new:{},old:{}", "B".repeat(42) + "A=", "A".repeat(43) + "=")).unwrap();
        assert_eq!(both.open(&row(1, 2), &envelope).unwrap().as_slice(), b"secret");
        let sealed_now = both.seal(&row(1, 2), b"secret");
        assert_eq!(old.open(&row(1, 2), &sealed_now), Err(OpenError::UnknownKey("new".to_owned())));
    }
}
