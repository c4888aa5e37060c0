//! Type filters from text that nobody wrote: what is accepted is what the grammar says, and means what text comparison says.
#![no_main]

use courant_api::filter::{MAX_PREFIXES, matches, parse_prefixes};
use libfuzzer_sys::fuzz_target;

/// The grammar, once more and in another way: segments of small letters, digits and `_`, the first beginning with a letter.
fn is_prefix(text: &str) -> bool {
    let mut segments = text.split('.');
    let first = segments.next().unwrap_or_default();
    let plain = |s: &str| s.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    text.len() <= 200 && first.starts_with(|c: char| c.is_ascii_lowercase()) && plain(first) && segments.all(plain)
}

fuzz_target!(|parameters: Vec<String>| {
    let items: Vec<&str> = parameters.iter().flat_map(|p| p.split(',')).collect();
    let allowed = items.len() <= MAX_PREFIXES && items.iter().all(|item| is_prefix(item));
    match parse_prefixes(&parameters) {
        Ok(prefixes) => {
            assert!(allowed);
            assert_eq!(prefixes, items);
            for prefix in &prefixes {
                assert!(matches(&prefixes, prefix) && matches(&prefixes, &format!("{prefix}x.y")));
            }
        }
        Err(_) => assert!(!allowed),
    }
});
