//! The grammar of type prefixes: which events a reader wants.

/// Most prefixes in one filter.
pub const MAX_PREFIXES: usize = 20;

/// A filter that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// The item of this number, from 1, that is not a prefix of any event type's name. It is not repeated: it may be a
    /// secret in the wrong place.
    #[error("item {0} is not a type prefix: lower-case segments of letters, digits and _, joined by dots")]
    Malformed(usize),
    /// Over [`MAX_PREFIXES`].
    #[error("more than {MAX_PREFIXES} type prefixes")]
    TooMany,
}

/// Prefixes from repeated, comma-separated parameters; an empty item is an error, none at all means every type.
pub fn parse_prefixes<S: AsRef<str>>(parameters: &[S]) -> Result<Vec<String>, FilterError> {
    let mut prefixes = Vec::new();
    for item in parameters.iter().flat_map(|parameter| parameter.as_ref().split(',')) {
        if prefixes.len() == MAX_PREFIXES {
            return Err(FilterError::TooMany);
        }
        if !is_prefix(item) {
            return Err(FilterError::Malformed(prefixes.len() + 1));
        }
        prefixes.push(item.to_owned());
    }
    Ok(prefixes)
}

/// `^[a-z][a-z0-9_]*(\.[a-z0-9_]*)*$`, at most 200 bytes.
fn is_prefix(text: &str) -> bool {
    text.len() <= 200
        && text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'.'))
}

/// Whether `name` is a whole event type name: at least two segments, each starting with a letter, at most 100 bytes.
pub fn is_type_name(name: &str) -> bool {
    name.len() <= 100
        && name.contains('.')
        && name.split('.').all(|segment| {
            segment.starts_with(|c: char| c.is_ascii_lowercase())
                && segment.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_'))
        })
}

/// Whether an event of `event_type` passes; no prefixes let everything pass.
pub fn matches(prefixes: &[String], event_type: &str) -> bool {
    prefixes.is_empty() || prefixes.iter().any(|prefix| event_type.starts_with(prefix.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_repeats_add_up() {
        assert_eq!(
            parse_prefixes(&["task.,approval.requested", "run"]).unwrap(),
            ["task.", "approval.requested", "run"]
        );
        assert_eq!(parse_prefixes::<&str>(&[]).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn the_grammar_is_exact() {
        for good in ["a", "task.", "task_", "t9.x_y.", "a..b"] {
            assert!(parse_prefixes(&[good]).is_ok(), "{good}");
        }
        for bad in ["", ".", "_a", "9a", "Task.", "task.%", "task*", "a,", ",a", "a,,b", "tâche", " a"] {
            assert!(matches!(parse_prefixes(&[bad]), Err(FilterError::Malformed(_))), "{bad}");
        }
    }

    #[test]
    fn the_twenty_first_prefix_is_refused() {
        assert!(parse_prefixes(&[vec!["a"; 20].join(",")]).is_ok());
        assert_eq!(parse_prefixes(&[vec!["a"; 21].join(",")]), Err(FilterError::TooMany));
    }

    #[test]
    fn an_underscore_is_a_letter() {
        assert!(!matches(&["task_".into()], "taskx.created"));
        assert!(matches(&["task_".into()], "task_list.created"));
    }
}
