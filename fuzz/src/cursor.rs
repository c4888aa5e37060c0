//! Cursors from text that nobody wrote: never a panic, and never two spellings of one cursor.
#![no_main]

use courant_api::Cursor;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(cursor) = Cursor::decode(text) {
        assert_eq!(cursor.encode(), text);
        assert!(cursor.seq >= 0);
    }
    // The body of a well-formed cursor with some other bytes in its middle.
    let mut near = String::from("ec1_");
    near.extend(text.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_')).take(32));
    if let Ok(cursor) = Cursor::decode(&near) {
        assert_eq!(cursor.encode(), near);
    }
});
