//! Building JSON pointers (RFC 6901), segment by segment. It must never read or resolve one.

use std::fmt::Display;
use std::fmt::Write as _;

/// Appends `/segment`, with `~` and `/` written as `~0` and `~1`.
pub(crate) fn push(pointer: &mut String, segment: impl Display) {
    pointer.push('/');
    // Writing to a String cannot fail.
    let _ = write!(Escaped(pointer), "{segment}");
}

/// `pointer` with one more segment.
pub(crate) fn join(pointer: &str, segment: impl Display) -> String {
    let mut longer = pointer.to_owned();
    push(&mut longer, segment);
    longer
}

struct Escaped<'a>(&'a mut String);

impl std::fmt::Write for Escaped<'_> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        for c in text.chars() {
            match c {
                '~' => self.0.push_str("~0"),
                '/' => self.0.push_str("~1"),
                c => self.0.push(c),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tildes_and_slashes_in_a_segment_are_escaped() {
        assert_eq!(join("/a", "x/~y"), "/a/x~1~0y");
        assert_eq!(join("", 7), "/7");
        assert_eq!(join("", ""), "/");
    }
}
