//! A number for a long text, the same on every machine and in every version: digests are stored.

/// FNV-1a: it has to notice a difference, not an attack.
#[derive(Debug)]
pub(crate) struct Digest(u64);

impl Digest {
    pub fn new() -> Self {
        Digest(0xcbf2_9ce4_8422_2325)
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        bytes.iter().for_each(|&byte| self.mix(u64::from(byte)));
    }

    pub fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    pub fn text_or_nothing(&mut self, text: Option<&str>) {
        self.number(u64::from(text.is_some()));
        text.into_iter().for_each(|text| self.text(text));
    }

    pub fn number(&mut self, number: u64) {
        number.to_le_bytes().into_iter().for_each(|byte| self.mix(u64::from(byte)));
    }

    pub fn finish(&self) -> u64 {
        self.0
    }

    fn mix(&mut self, byte: u64) {
        self.0 = (self.0 ^ byte).wrapping_mul(0x0100_0000_01b3);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(build: impl FnOnce(&mut Digest)) -> u64 {
        let mut digest = Digest::new();
        build(&mut digest);
        digest.finish()
    }

    #[test]
    fn what_differs_has_another_digest_and_what_was_stored_stays() {
        let one = digest(|digest| digest.text("ab"));
        assert_ne!(one, digest(|digest| ["a", "b"].iter().for_each(|text| digest.text(text))));
        assert_ne!(
            digest(|digest| digest.text_or_nothing(None)),
            digest(|digest| digest.text_or_nothing(Some("")))
        );
        assert_eq!(one, 0x9c60_01d3_28a9_4690);
    }
}
