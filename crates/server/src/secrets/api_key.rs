//! API keys: how they are made, and what of them is kept.
//!
//! Only the hash and the first characters are ever stored. A key has so much randomness that a plain hash is enough.

use std::fmt;

use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

/// What every API key starts with, so that people and scanners recognise one.
pub const MARK: &str = "cak_";

/// What every token for one decision starts with.
pub const DECISION_MARK: &str = "cdt_";

/// Letters and digits without 0, O, I and l, which are taken for one another.
const ALPHABET: &[u8; 58] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

/// 44 of 58 symbols hold more than 256 bits.
const SYMBOLS: usize = 44;

const SHOWN: usize = 8;

/// A whole API key, which is shown once and not kept.
pub struct ApiKeySecret(Zeroizing<String>);

impl ApiKeySecret {
    /// The key itself.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ApiKeySecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[api key]")
    }
}

/// A new key.
pub fn generate() -> ApiKeySecret {
    generate_marked(MARK)
}

/// A new secret with this mark.
pub fn generate_marked(mark: &str) -> ApiKeySecret {
    let mut key = Zeroizing::new(String::with_capacity(mark.len() + SYMBOLS));
    key.push_str(mark);
    while key.len() < mark.len() + SYMBOLS {
        let [byte] = super::random();
        // 232 is four times 58: bytes above it would favour the first symbols.
        if byte < 232 {
            key.push(char::from(ALPHABET[usize::from(byte) % ALPHABET.len()]));
        }
    }
    ApiKeySecret(key)
}

/// What is stored of a key and looked up by.
pub fn hash(key: &str) -> [u8; 32] {
    Sha256::digest(key.as_bytes()).into()
}

/// The first characters, by which people tell their keys apart.
pub fn prefix(key: &str) -> String {
    key.chars().take(SHOWN).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_its_mark_and_only_clear_symbols() {
        let key = generate();
        let symbols = key.expose().strip_prefix(MARK).unwrap();
        assert_eq!(symbols.len(), SYMBOLS);
        assert!(symbols.bytes().all(|b| ALPHABET.contains(&b)), "{symbols}");
        assert_ne!(key.expose(), generate().expose());
    }

    #[test]
    fn every_symbol_turns_up() {
        let text: String = (0..200).map(|_| generate().expose().replacen(MARK, "", 1)).collect();
        assert!(ALPHABET.iter().all(|&b| text.contains(char::from(b))));
    }

    #[test]
    fn the_hash_is_sha_256_of_the_whole_key() {
        let known = [
            0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea, 0x41, 0x41, 0x40, 0xde, 0x5d, 0xae, 0x22, 0x23, 0xb0, 0x03,
            0x61, 0xa3, 0x96, 0x17, 0x7a, 0x9c, 0xb4, 0x10, 0xff, 0x61, 0xf2, 0x00, 0x15, 0xad,
        ];
        assert_eq!(hash("abc"), known);
    }

    #[test]
    fn the_prefix_is_eight_characters_of_any_text() {
        assert_eq!(prefix("cak_Abcdefgh"), "cak_Abcd");
        assert_eq!(prefix("ключключключ"), "ключключ");
        assert_eq!(prefix("x"), "x");
    }

    #[test]
    fn debug_prints_nothing_of_a_key() {
        assert_eq!(format!("{:?}", generate()), "[api key]");
    }
}
