//! User text made harmless for Slack: escaped once, and cut to a length that is measured after escaping.
//!
//! What comes out holds no `<`, `>` or bare `&`, so it can form no link and no mention; no line break; and is never cut
//! inside a character or an entity. Lengths are UTF-16 units, the strictest way in which Slack might count.

/// Text for mrkdwn. Characters that would restyle what follows are swapped for ones that look alike; `_` stays, since
/// names are full of it and the worst it does is slant them.
pub(super) fn mrkdwn(text: &str, room: usize) -> String {
    fit(text, room, |c| match c {
        '*' => '∗',
        '~' => '∼',
        '`' => 'ˋ',
        other => other,
    })
}

/// Text for where no markup is read.
pub(super) fn plain(text: &str, room: usize) -> String {
    fit(text, room, |c| c)
}

/// A link's address, if it is one that people can open and fits; a cut address would be a wrong one.
pub(super) fn address(url: &str, room: usize) -> Option<String> {
    let openable = url.starts_with("https://") || url.starts_with("http://");
    if !openable || url.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return None;
    }
    let url = url.replace('<', "%3C").replace('>', "%3E").replace('|', "%7C").replace('&', "&amp;");
    (width(&url) <= room).then_some(url)
}

/// Length as it is counted here.
pub(super) fn width(text: &str) -> usize {
    text.encode_utf16().count()
}

fn fit(text: &str, room: usize, swap: impl Fn(char) -> char) -> String {
    let mut out = String::new();
    let (mut used, mut cut) = (0, 0);
    for c in clean(text).map(swap) {
        let mut buffer = [0; 4];
        let piece = match c {
            '&' => "&amp;",
            '<' => "&lt;",
            '>' => "&gt;",
            _ => c.encode_utf8(&mut buffer),
        };
        if used + width(piece) > room {
            out.truncate(cut);
            out.push('…');
            return out;
        }
        used += width(piece);
        out.push_str(piece);
        // The ellipsis takes one unit; remember the longest text that leaves it.
        if used < room {
            cut = out.len();
        }
    }
    out
}

/// White space and control characters become single spaces, none at the ends; invisible characters that reorder or
/// hide text go.
fn clean(text: &str) -> impl Iterator<Item = char> {
    let mut words = text
        .split(|c: char| c.is_whitespace() || c.is_control())
        .map(|word| word.chars().filter(|c| !is_invisible(*c)).peekable())
        .filter_map(|mut word| word.peek().is_some().then_some(word));
    let first = words.next();
    first.into_iter().flatten().chain(words.flat_map(|word| std::iter::once(' ').chain(word)))
}

fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{061c}' | '\u{feff}'
        | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_special_character_is_escaped_once() {
        assert_eq!(plain("a<b>&c &amp;", 100), "a&lt;b&gt;&amp;c &amp;amp;");
        assert_eq!(
            mrkdwn("<!channel> <@U1> <https://evil.example|x>", 100),
            "&lt;!channel&gt; &lt;@U1&gt; &lt;https://evil.example|x&gt;"
        );
    }

    #[test]
    fn text_stays_on_its_line_and_in_its_order() {
        assert_eq!(plain(" a\r\n\tb\u{2028}c\u{0}d \u{200b} ", 100), "a b c d");
        assert_eq!(plain("safe\u{202e}exe", 100), "safeexe");
        assert_eq!(plain("\n\u{200b}\n", 100), "");
    }

    #[test]
    fn styling_characters_lose_their_effect_but_not_their_look() {
        assert_eq!(mrkdwn("*a* ~b~ `c` d_e", 100), "∗a∗ ∼b∼ ˋcˋ d_e");
        assert_eq!(plain("*a* ~b~ `c` d_e", 100), "*a* ~b~ `c` d_e");
    }

    #[test]
    fn a_cut_is_marked_and_splits_neither_entity_nor_character() {
        assert_eq!(plain("abcdef", 6), "abcdef");
        assert_eq!(plain("abcdefg", 6), "abcde…");
        assert_eq!(plain("abcd&", 6), "abcd…");
        assert_eq!(plain("a&b", 7), "a&amp;b");
        assert_eq!(plain("a&bc", 7), "a&amp;…");
        assert_eq!(plain("😀😀", 3), "😀…");
        assert_eq!(plain(&"я".repeat(50), 10), format!("{}…", "я".repeat(9)));
    }

    #[test]
    fn an_address_ends_no_link_and_is_never_cut() {
        assert_eq!(address("https://a.example/?q=<1>|2&r=3", 100).unwrap(), "https://a.example/?q=%3C1%3E%7C2&amp;r=3");
        for wrong in ["", "javascript:alert(1)", "a.example", "https://a.example/ b", "https://a.example/\nb"] {
            assert_eq!(address(wrong, 100), None, "{wrong:?}");
        }
        assert_eq!(address("https://a.example/&", 20), None);
    }

    proptest! {
        #[test]
        fn whatever_the_text_it_fits_and_forges_nothing(text in any::<String>(), room in 1_usize..80) {
            for out in [mrkdwn(&text, room), plain(&text, room)] {
                prop_assert!(width(&out) <= room);
                prop_assert!(!out.contains(['<', '>', '\n', '\r']));
                let bare = out.replace("&amp;", "").replace("&lt;", "").replace("&gt;", "");
                prop_assert!(!bare.contains('&'));
            }
        }
    }
}
