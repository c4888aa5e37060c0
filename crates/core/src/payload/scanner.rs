//! A JSON reader that keeps nothing but where it is and which keys it has seen. Nesting lives on its own stack, so no
//! text can exhaust the thread's; it must never recurse.

use std::borrow::Cow;

use super::{Fault, FaultKind, MAX_FAULTS};
use crate::pointer;

/// Once the pointers told are this long together, no more faults are told.
const MAX_POINTER_BYTES: usize = 16 * 1024;
/// Up to this many keys, comparing each with each is quicker than sorting.
const FEW_KEYS: usize = 12;

pub(super) fn scan(text: &str, max_depth: usize) -> Vec<Fault> {
    let mut scanner =
        Scanner { text, at: 0, max_depth, frames: Vec::new(), keys: Vec::new(), faults: Vec::new(), pointer_bytes: 0 };
    if let Err(expected) = scanner.document() {
        let message = format!("not JSON at byte {}: {expected}", scanner.at);
        // Always told, also after twenty others: it decides what the text is.
        scanner.faults.truncate(MAX_FAULTS - 1);
        let pointer = scanner.pointer();
        scanner.faults.push(Fault { pointer, message, kind: FaultKind::Syntax });
    }
    scanner.faults
}

/// What was expected where the text stops being JSON.
type Syntax = &'static str;

struct Scanner<'a> {
    text: &'a str,
    at: usize,
    max_depth: usize,
    frames: Vec<Frame>,
    /// The keys of every open object that is not too deep, outermost first.
    keys: Vec<Cow<'a, str>>,
    faults: Vec<Fault>,
    pointer_bytes: usize,
}

#[derive(Clone, Copy)]
enum Frame {
    Array {
        index: usize,
    },
    /// Its keys so far are `keys[first..first + count]`.
    Object {
        first: usize,
        count: usize,
    },
}

/// What a string holds besides plain characters.
#[derive(Default)]
struct Contents {
    escapes: bool,
    nul: bool,
    lone_surrogate: bool,
}

impl<'a> Scanner<'a> {
    fn document(&mut self) -> Result<(), Syntax> {
        loop {
            if self.opens_container()? {
                continue;
            }
            // A value has ended: close what ends with it and step to the next one.
            loop {
                self.skip_space();
                let Some(frame) = self.frames.last_mut() else {
                    return if self.at == self.text.len() { Ok(()) } else { Err("nothing more was expected") };
                };
                match (self.text.as_bytes().get(self.at), frame) {
                    (Some(b','), Frame::Array { index }) => {
                        *index += 1;
                        self.at += 1;
                        break;
                    }
                    (Some(b','), Frame::Object { .. }) => {
                        self.at += 1;
                        self.skip_space();
                        self.key()?;
                        break;
                    }
                    (Some(b']'), Frame::Array { .. }) | (Some(b'}'), Frame::Object { .. }) => {
                        self.close();
                    }
                    (_, Frame::Array { .. }) => return Err("expected , or ]"),
                    (_, Frame::Object { .. }) => return Err("expected , or }"),
                }
            }
        }
    }

    /// Reads a scalar, an empty container (both: false) or the start of a container up to its first value (true).
    fn opens_container(&mut self) -> Result<bool, Syntax> {
        self.skip_space();
        match self.peek() {
            Some(b'{') => {
                self.open(Frame::Object { first: self.keys.len(), count: 0 });
                if self.peek() == Some(b'}') {
                    self.close();
                    return Ok(false);
                }
                self.key()?;
                return Ok(true);
            }
            Some(b'[') => {
                self.open(Frame::Array { index: 0 });
                if self.peek() == Some(b']') {
                    self.close();
                    return Ok(false);
                }
                return Ok(true);
            }
            Some(b'"') => {
                let (_, contents) = self.string()?;
                self.judge(&contents);
            }
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(b't') => self.literal("true")?,
            Some(b'f') => self.literal("false")?,
            Some(b'n') => self.literal("null")?,
            _ => return Err("expected a value"),
        }
        Ok(false)
    }

    fn open(&mut self, frame: Frame) {
        if self.frames.len() == self.max_depth {
            self.fault("nested too deep".into());
        }
        self.frames.push(frame);
        self.at += 1;
        self.skip_space();
    }

    fn close(&mut self) {
        self.at += 1;
        if let Some(Frame::Object { first, count }) = self.frames.pop()
            && count > 0
        {
            // The frame is gone, so the pointer is the object's.
            let repeated = repeated(self.keys.get(first..).unwrap_or_default());
            self.keys.truncate(first);
            for key in repeated {
                let pointer = pointer::join(&self.pointer(), key);
                self.push_fault(pointer, "the key occurs more than once".to_owned());
            }
        }
    }

    /// Reads `"key":`.
    fn key(&mut self) -> Result<(), Syntax> {
        if self.peek() != Some(b'"') {
            return Err("expected a key in quotes");
        }
        let (raw, contents) = self.string()?;
        if !self.is_too_deep() {
            self.keys.push(if contents.escapes { Cow::Owned(unescaped(raw)) } else { Cow::Borrowed(raw) });
            if let Some(Frame::Object { count, .. }) = self.frames.last_mut() {
                *count += 1;
            }
            self.judge(&contents);
        }
        self.skip_space();
        if self.peek() != Some(b':') {
            return Err("expected :");
        }
        self.at += 1;
        Ok(())
    }

    /// Reads a string and gives what stands between its quotes.
    fn string(&mut self) -> Result<(&'a str, Contents), Syntax> {
        self.at += 1;
        let start = self.at;
        let mut contents = Contents::default();
        loop {
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => {
                    contents.escapes = true;
                    self.escape(&mut contents)?;
                }
                Some(0..0x20) => return Err("control characters must be escaped"),
                Some(_) => self.at += 1,
                None => return Err("the string does not end"),
            }
        }
        let raw = self.text.get(start..self.at).unwrap_or_default();
        self.at += 1;
        Ok((raw, contents))
    }

    fn escape(&mut self, contents: &mut Contents) -> Result<(), Syntax> {
        self.at += 1;
        match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 1,
            Some(b'u') => match self.code_unit()? {
                0 => contents.nul = true,
                0xD800..0xDC00 => {
                    let after = self.at;
                    let pairs = self.text.as_bytes().get(after..after + 2) == Some(br"\u") && {
                        self.at += 1;
                        (0xDC00..0xE000).contains(&self.code_unit()?)
                    };
                    if !pairs {
                        // What follows is read again as an escape of its own.
                        self.at = after;
                        contents.lone_surrogate = true;
                    }
                }
                0xDC00..0xE000 => contents.lone_surrogate = true,
                _ => {}
            },
            _ => return Err("unknown escape"),
        }
        Ok(())
    }

    /// Reads the `u` of an escape and its four hexadecimal digits.
    fn code_unit(&mut self) -> Result<u16, Syntax> {
        self.at += 1;
        let mut unit = 0;
        for _ in 0..4 {
            let digit =
                self.peek().and_then(|b| char::from(b).to_digit(16)).ok_or("expected four hexadecimal digits")?;
            unit = unit * 16 + digit;
            self.at += 1;
        }
        u16::try_from(unit).map_err(|_| "expected four hexadecimal digits")
    }

    fn number(&mut self) -> Result<(), Syntax> {
        let start = self.at;
        self.skip(b"-");
        match self.peek() {
            Some(b'0') => self.at += 1,
            _ => self.digits()?,
        }
        if self.skip(b".") {
            self.digits()?;
        }
        let exponent = self.skip(b"eE");
        if exponent {
            self.skip(b"+-");
            self.digits()?;
        }
        // Without an exponent, a double holds any number of 300 digits.
        if exponent || self.at - start > 300 {
            let number = self.text.get(start..self.at).unwrap_or_default();
            // serde_json is asked too: near the edge it rounds on its own, and it is what reads payloads here.
            let fits = number.parse::<f64>().is_ok_and(f64::is_finite) && serde_json::from_str::<f64>(number).is_ok();
            if !fits {
                self.fault("the number is out of range".to_owned());
            }
        }
        Ok(())
    }

    /// Reads one digit or more.
    fn digits(&mut self) -> Result<(), Syntax> {
        if !self.peek().is_some_and(|b| b.is_ascii_digit()) {
            return Err("expected a digit");
        }
        while self.peek().is_some_and(|b| b.is_ascii_digit()) {
            self.at += 1;
        }
        Ok(())
    }

    fn literal(&mut self, word: &str) -> Result<(), Syntax> {
        if !self.text.as_bytes().get(self.at..).is_some_and(|rest| rest.starts_with(word.as_bytes())) {
            return Err("expected a value");
        }
        self.at += word.len();
        Ok(())
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Steps over one byte if it is one of these.
    fn skip(&mut self, bytes: &[u8]) -> bool {
        let found = self.peek().is_some_and(|b| bytes.contains(&b));
        self.at += usize::from(found);
        found
    }

    fn skip_space(&mut self) {
        while self.skip(b" \t\n\r") {}
    }

    fn is_too_deep(&self) -> bool {
        self.frames.len() > self.max_depth
    }

    fn judge(&mut self, contents: &Contents) {
        if contents.nul {
            self.fault(r"\u0000 cannot be kept".to_owned());
        }
        if contents.lone_surrogate {
            self.fault("a surrogate stands alone".to_owned());
        }
    }

    /// Tells a fault of the value being read, unless it lies too deep and that has been told.
    fn fault(&mut self, message: String) {
        if !self.is_too_deep() {
            self.push_fault(self.pointer(), message);
        }
    }

    fn push_fault(&mut self, pointer: String, message: String) {
        if self.faults.len() < MAX_FAULTS && self.pointer_bytes < MAX_POINTER_BYTES {
            self.pointer_bytes += pointer.len();
            self.faults.push(Fault { pointer, message, kind: FaultKind::Unkeepable });
        }
    }

    /// Where the value being read stands; what lies too deep stands where the depth was exceeded.
    fn pointer(&self) -> String {
        let mut pointer = String::new();
        for frame in self.frames.iter().take(self.max_depth) {
            match *frame {
                Frame::Array { index } => pointer::push(&mut pointer, index),
                Frame::Object { first, count } => {
                    // Before its first key, the place is the object itself.
                    if let Some(key) = count.checked_sub(1).and_then(|last| self.keys.get(first + last)) {
                        pointer::push(&mut pointer, key);
                    }
                }
            }
        }
        pointer
    }
}

/// Each key that is there more than once, once.
fn repeated(keys: &[Cow<'_, str>]) -> Vec<String> {
    let mut repeated: Vec<&str> = if keys.len() <= FEW_KEYS {
        let seen_before = |i: usize| keys.iter().take(i).any(|earlier| *earlier == keys[i]);
        (1..keys.len()).filter(|&i| seen_before(i)).map(|i| keys[i].as_ref()).collect()
    } else {
        let mut sorted: Vec<&str> = keys.iter().map(AsRef::as_ref).collect();
        sorted.sort_unstable();
        sorted.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect()
    };
    repeated.sort_unstable();
    repeated.dedup();
    repeated.into_iter().map(str::to_owned).collect()
}

/// What the escapes of a well-formed string stand for; lone surrogates become U+FFFD.
fn unescaped(raw: &str) -> String {
    let mut text = String::with_capacity(raw.len());
    let mut rest = raw.chars();
    while let Some(c) = rest.next() {
        if c != '\\' {
            text.push(c);
            continue;
        }
        match rest.next() {
            Some('b') => text.push('\u{8}'),
            Some('f') => text.push('\u{c}'),
            Some('n') => text.push('\n'),
            Some('r') => text.push('\r'),
            Some('t') => text.push('\t'),
            Some('u') => {
                let unit = hex(&mut rest);
                let mut ahead = rest.clone();
                let pair = match (unit, ahead.next(), ahead.next()) {
                    (0xD800..0xDC00, Some('\\'), Some('u')) => {
                        Some(hex(&mut ahead)).filter(|low| (0xDC00..0xE000).contains(low))
                    }
                    _ => None,
                };
                if let Some(low) = pair {
                    rest = ahead;
                    text.extend(char::from_u32(0x1_0000 + ((unit - 0xD800) << 10) + (low - 0xDC00)));
                } else {
                    text.push(char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER));
                }
            }
            Some(c) => text.push(c),
            None => {}
        }
    }
    text
}

fn hex(digits: &mut std::str::Chars<'_>) -> u32 {
    digits.take(4).fold(0, |unit, c| unit * 16 + c.to_digit(16).unwrap_or(0))
}
