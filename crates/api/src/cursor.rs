//! The text of a cursor: `ec1_<base64url>`, opaque to clients.
//!
//! A cursor names a position in one tenant's view of one journal. It is constant in size and checked: any changed
//! character is noticed, so a damaged cursor is an error and never a silent jump. The check is a checksum, not a
//! signature: a position is not a secret and grants nothing.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use uuid::Uuid;

/// A position in a journal: "read what comes after `seq`".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// Identity of the journal as this tenant sees it.
    pub journal: JournalId,
    /// Which incarnation of the journal's database handed it out.
    pub incarnation: u32,
    /// The last position that is read; 0 lies before the first event.
    pub seq: i64,
}

/// Identity of a journal as one tenant sees it: 8 bytes derived from the journal's and the tenant's id, so that
/// another tenant's cursor belongs to another journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalId([u8; 8]);

impl JournalId {
    /// The identity of `journal` as `tenant` sees it.
    pub fn new(journal: Uuid, tenant: Uuid) -> Self {
        let mut id = [0; 8];
        let halves = [journal.as_bytes(), tenant.as_bytes()].map(|half| crc32fast::hash(half).to_be_bytes());
        let crossed = crc32fast::hash(&[journal.as_bytes().as_slice(), tenant.as_bytes()].concat()).to_be_bytes();
        for (i, byte) in id.iter_mut().enumerate() {
            *byte = if i < 4 { halves[0][i] ^ halves[1][i].rotate_left(3) } else { crossed[i - 4] };
        }
        Self(id)
    }
}

/// Why a text is not a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CursorError {
    /// Not the text of any cursor.
    #[error("malformed cursor")]
    Malformed,
    /// A later format.
    #[error("unsupported cursor version")]
    UnsupportedVersion,
}

const BODY_BYTES: usize = 8 + 4 + 8;
/// Body and its CRC-32: 24 bytes are 32 characters without a spare bit, so there is one spelling of each cursor.
const TEXT_BYTES: usize = BODY_BYTES + 4;

impl Cursor {
    /// The cursor's text.
    pub fn encode(&self) -> String {
        let mut bytes = [0u8; TEXT_BYTES];
        bytes[..8].copy_from_slice(&self.journal.0);
        bytes[8..12].copy_from_slice(&self.incarnation.to_be_bytes());
        bytes[12..BODY_BYTES].copy_from_slice(&self.seq.to_be_bytes());
        let check = crc32fast::hash(&bytes[..BODY_BYTES]);
        bytes[BODY_BYTES..].copy_from_slice(&check.to_be_bytes());
        format!("ec1_{}", URL_SAFE_NO_PAD.encode(bytes))
    }

    /// Reads a cursor's text.
    pub fn decode(text: &str) -> Result<Self, CursorError> {
        let Some(body) = text.strip_prefix("ec1_") else {
            return Err(later_version(text).unwrap_or(CursorError::Malformed));
        };
        let bytes: [u8; TEXT_BYTES] =
            URL_SAFE_NO_PAD.decode(body).ok().and_then(|bytes| bytes.try_into().ok()).ok_or(CursorError::Malformed)?;
        let (journal, rest) = bytes.split_at(8);
        let (incarnation, rest) = rest.split_at(4);
        let (seq, check) = rest.split_at(8);
        let cursor = Self {
            journal: JournalId(array(journal)),
            incarnation: u32::from_be_bytes(array(incarnation)),
            seq: i64::from_be_bytes(array(seq)),
        };
        let intact = crc32fast::hash(&bytes[..BODY_BYTES]).to_be_bytes() == check;
        if intact && cursor.seq >= 0 { Ok(cursor) } else { Err(CursorError::Malformed) }
    }
}

fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(bytes);
    out
}

/// `ec<n>_…` with n > 1 is a cursor of a later server.
fn later_version(text: &str) -> Option<CursorError> {
    let (number, _) = text.strip_prefix("ec")?.split_once('_')?;
    let number: u32 = (number.len() <= 4).then_some(number)?.parse().ok()?;
    (number > 1).then_some(CursorError::UnsupportedVersion)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Cursor {
        Cursor { journal: JournalId::new(Uuid::from_u128(7), Uuid::from_u128(9)), incarnation: 3, seq: 123_456_789 }
    }

    #[test]
    fn a_cursor_comes_back_as_it_was() {
        assert_eq!(Cursor::decode(&sample().encode()), Ok(sample()));
    }

    // Broken on purpose: without the comparison of the checksum it fails.
    #[test]
    fn any_changed_character_is_noticed() {
        let text = sample().encode();
        let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=.+/ ";
        for at in "ec1_".len()..text.len() {
            for letter in alphabet {
                let mut changed = text.clone().into_bytes();
                if changed[at] != *letter {
                    changed[at] = *letter;
                    let changed = String::from_utf8(changed).unwrap();
                    assert_eq!(Cursor::decode(&changed), Err(CursorError::Malformed), "{changed}");
                }
            }
        }
    }

    #[test]
    fn a_later_format_is_told_from_a_malformed_one() {
        assert_eq!(Cursor::decode("ec2_AAAA"), Err(CursorError::UnsupportedVersion));
        for bad in ["", "0", "ec1_", "ec0_AA", "ec_AA", "ec99999_AA", "ec-1_AA", "EC2_AA", "17"] {
            assert_eq!(Cursor::decode(bad), Err(CursorError::Malformed), "{bad}");
        }
    }

    #[test]
    fn tenants_see_different_journals() {
        let journal = Uuid::from_u128(7);
        assert_ne!(JournalId::new(journal, Uuid::from_u128(1)), JournalId::new(journal, Uuid::from_u128(2)));
        assert_ne!(JournalId::new(journal, Uuid::from_u128(1)), JournalId::new(Uuid::from_u128(1), journal));
    }
}
