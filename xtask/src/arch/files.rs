//! What may stand in a source file, how long it may be and what it may be called.

use super::Violations;
use super::facts::SourceFile;

const LONGEST: usize = 600;

/// Names that say nothing about what is inside.
const EMPTY_NAMES: &[&str] = &["common", "helper", "helpers", "manager", "managers", "misc", "util", "utils"];

// Written apart, so that this file does not contain them.
const UNFINISHED: &[&str] =
    &[concat!("to", "do!("), concat!("unimple", "mented!("), concat!("#[ig", "nore"), concat!("pytest.mark.", "skip")];

/// Files over the limit; tests do not count.
pub(crate) fn check_sizes(files: &[SourceFile]) -> Violations {
    files
        .iter()
        .filter(|file| !is_test(&file.path))
        .map(|file| (file, lines_without_tests(&file.text)))
        .filter(|(_, lines)| *lines > LONGEST)
        .map(|(file, lines)| format!("{} has {lines} lines (tests apart); {LONGEST} are allowed", file.path))
        .collect()
}

/// Code that is not there yet and tests that do not run.
pub(crate) fn check_unfinished(files: &[SourceFile]) -> Violations {
    let mut violations = Violations::new();
    for file in files {
        for (number, line) in file.text.lines().enumerate() {
            if let Some(found) = UNFINISHED.iter().find(|found| line.contains(**found)) {
                violations.push(format!("{}:{} contains `{found}`", file.path, number + 1));
            }
        }
    }
    violations
}

/// Files and folders whose name says nothing.
pub(crate) fn check_names(files: &[SourceFile]) -> Violations {
    let empty = |part: &str| {
        let stem = part.split('.').next().unwrap_or(part);
        EMPTY_NAMES.contains(&stem)
    };
    files
        .iter()
        .filter(|file| file.path.split('/').any(empty))
        .map(|file| format!("{} has a name that says nothing about its content", file.path))
        .collect()
}

fn is_test(path: &str) -> bool {
    let mut parts = path.split('/').rev();
    let file = parts.next().unwrap_or_default();
    file == "tests.rs" || file.starts_with("test_") || file.ends_with("_tests.rs") || parts.any(|part| part == "tests")
}

/// Counts lines without `#[cfg(test)] mod … { … }`.
fn lines_without_tests(text: &str) -> usize {
    let mut lines = text.lines().peekable();
    let mut count = 0;
    while let Some(line) = lines.next() {
        let opens = |next: &&str| next.starts_with("mod ") && next.ends_with('{');
        if line == "#[cfg(test)]" && lines.peek().is_some_and(opens) {
            lines.by_ref().find(|line| *line == "}");
        } else {
            count += 1;
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> SourceFile {
        SourceFile { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn a_file_that_is_too_long_without_its_tests_is_named() {
        let long = "x\n".repeat(601);
        let tested = format!("{}#[cfg(test)]\nmod tests {{\n{}}}\n", "x\n".repeat(600), "    x\n".repeat(500));
        let files = [
            file("crates/a/src/long.rs", &long),
            file("crates/a/src/tested.rs", &tested),
            file("crates/a/src/after.rs", &format!("{tested}x\n")),
            file("crates/a/tests/it/long.rs", &long),
        ];
        assert_eq!(
            check_sizes(&files),
            [
                "crates/a/src/long.rs has 601 lines (tests apart); 600 are allowed",
                "crates/a/src/after.rs has 601 lines (tests apart); 600 are allowed"
            ]
        );
    }

    #[test]
    fn unfinished_code_and_tests_that_do_not_run_are_named() {
        for found in UNFINISHED {
            let violations = check_unfinished(&[file("a.rs", &format!("fine\n  {found} x\n"))]);
            assert_eq!(violations, [format!("a.rs:2 contains `{found}`")]);
        }
        assert!(check_unfinished(&[file("a.rs", "// a list of things to do!")]).is_empty());
    }

    #[test]
    fn a_file_or_folder_with_an_empty_name_is_named() {
        let files = [
            file("crates/a/src/utils.rs", ""),
            file("crates/a/tests/common/mod.rs", ""),
            file("crates/a/src/commonmark.rs", ""),
        ];
        assert_eq!(
            check_names(&files),
            [
                "crates/a/src/utils.rs has a name that says nothing about its content",
                "crates/a/tests/common/mod.rs has a name that says nothing about its content"
            ]
        );
    }
}
