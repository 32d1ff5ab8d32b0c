//! What is compared with a file that somebody has looked at. `TIDEGATE_BLESS=1` writes the file instead.

use std::path::Path;

pub fn compare(file: &str, lines: &[String]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(file);
    let found = lines.join("\n") + "\n";
    if std::env::var_os("TIDEGATE_BLESS").is_some() {
        std::fs::write(&path, &found).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default().replace("\r\n", "\n");
    assert!(found == expected, "{file} differs; if that is meant, TIDEGATE_BLESS=1 writes it down:\n{found}");
}
