//! Sizes the way people write them: `512KiB`, `16MiB`.

const UNITS: [(&str, usize); 2] = [("KiB", 1 << 10), ("MiB", 1 << 20)];

/// Reads `4096`, `512KiB` and `16MiB`, as a number of bytes.
pub(crate) fn parse_size(text: &str) -> Option<usize> {
    let unit = |(name, bytes): &(&str, usize)| Some((text.strip_suffix(name)?, *bytes));
    let (number, bytes) = UNITS.iter().find_map(unit).unwrap_or((text, 1));
    let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| number.parse::<usize>().ok()?.checked_mul(bytes)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_people_write() {
        let cases = [("4096", 4_096), ("512KiB", 524_288), ("16MiB", 16_777_216), ("0", 0)];
        for (text, bytes) in cases {
            assert_eq!(parse_size(text), Some(bytes), "{text}");
        }
        for text in
            ["", "MiB", "1 MiB", "1MB", "+1", "-1", "1.5MiB", "99999999999999999999", "9999999999999999MiB"]
        {
            assert_eq!(parse_size(text), None, "{text}");
        }
    }
}
