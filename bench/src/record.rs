//! The document: tables between markers are replaced, the words around them are left alone.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::machine::Machine;
use crate::report::{Table, markdown};

/// Replaces the tables of these benches in the document, and what it says about the machine.
pub fn write(document: &Path, machine: &Machine, tables: &[Table]) -> Result<()> {
    let mut text = fs::read_to_string(document).with_context(|| document.display().to_string())?;
    text = replace(&text, "machine", &machine.markdown())?;
    for table in tables {
        text = replace(&text, table.bench, &markdown(table))?;
    }
    fs::write(document, text).with_context(|| document.display().to_string())
}

fn replace(text: &str, name: &str, content: &str) -> Result<String> {
    let (start, end) = (format!("<!-- {name} -->\n"), format!("<!-- /{name} -->\n"));
    let (before, rest) = text.split_once(&start).with_context(|| format!("no marker <!-- {name} -->"))?;
    let (_, after) = rest.split_once(&end).with_context(|| format!("no marker <!-- /{name} -->"))?;
    Ok(format!("{before}{start}\n{content}\n{end}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str =
        "# Figures\n\n<!-- seam -->\nold\n<!-- /seam -->\n\nWords.\n<!-- append -->\n<!-- /append -->\n";

    #[test]
    fn only_what_stands_between_its_markers_is_replaced() {
        let once = replace(DOCUMENT, "seam", "| new |\n").unwrap();
        assert_eq!(
            once,
            "# Figures\n\n<!-- seam -->\n\n| new |\n\n<!-- /seam -->\n\nWords.\n<!-- append -->\n<!-- /append -->\n"
        );
        assert_eq!(replace(&once, "seam", "| new |\n").unwrap(), once, "writing again changes nothing");
    }

    #[test]
    fn a_document_without_the_marker_is_refused() {
        assert!(replace(DOCUMENT, "deliver", "").is_err());
    }
}
