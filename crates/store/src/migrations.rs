//! A schema as numbered steps that are made once and never edited. Both databases keep these rules.
//!
//! There is no way back: a store that a newer version has changed is refused, and a step whose text is not what was
//! once made means that nobody knows what the tables look like.

use crate::contract::StoreError;

pub struct Migration {
    pub number: u32,
    pub name: &'static str,
    pub text: &'static str,
}

/// A step as the store remembers it.
pub struct Made {
    pub number: u32,
    pub name: String,
    pub checksum: String,
}

/// The newest schema that this version knows.
pub fn known(all: &[Migration]) -> u32 {
    all.last().map_or(0, |migration| migration.number)
}

/// The steps that are still to be made, if those that were made are the ones we know.
pub fn missing<'a>(all: &'a [Migration], made: &[Made]) -> Result<&'a [Migration], StoreError> {
    for step in made {
        let Some(migration) = all.iter().find(|migration| migration.number == step.number) else {
            return Err(StoreError::Newer { found: step.number, known: known(all) });
        };
        if checksum(migration.text) != step.checksum {
            return Err(StoreError::Broken(format!(
                "migration {} ({}) was made with another text",
                step.number, step.name
            )));
        }
    }
    let newest = made.last().map_or(0, |step| step.number);
    Ok(all.iter().position(|migration| migration.number > newest).map_or(&[], |first| &all[first..]))
}

/// For who only reads: the schema must be exactly the one this version knows.
pub fn expect_newest(all: &[Migration], made: &[Made]) -> Result<(), StoreError> {
    if missing(all, made)?.is_empty() {
        return Ok(());
    }
    let found = made.last().map_or(0, |step| step.number);
    Err(StoreError::Older { found, known: known(all) })
}

/// FNV-1a: it has to notice an edit, not an attack. Line ends do not count, because git may change them.
pub fn checksum(text: &str) -> String {
    let bytes = text.bytes().filter(|&byte| byte != b'\r');
    let sum = bytes
        .fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    format!("{sum:016x}")
}

#[cfg(test)]
pub fn expect_unedited(all: &[Migration], sums: &[&str]) {
    assert!(all.iter().map(|migration| migration.number).eq(1..=known(all)), "numbers rise by one");
    let found: Vec<String> = all.iter().map(|migration| checksum(migration.text)).collect();
    assert_eq!(found, sums, "what was released is not edited");
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEPS: &[Migration] = &[
        Migration { number: 1, name: "one", text: "a" },
        Migration { number: 2, name: "two", text: "b" },
        Migration { number: 3, name: "three", text: "c" },
    ];

    fn made(numbers: std::ops::RangeInclusive<u32>) -> Vec<Made> {
        numbers
            .map(|number| Made {
                number,
                name: String::new(),
                checksum: checksum(["a", "b", "c", "d"][number as usize - 1]),
            })
            .collect()
    }

    #[test]
    fn every_earlier_version_is_brought_forward() {
        for known in 0..=3 {
            let missing = missing(STEPS, &made(1..=known)).unwrap();
            assert!(missing.iter().map(|step| step.number).eq(known + 1..=3));
            assert_eq!(expect_newest(STEPS, &made(1..=known)).is_ok(), known == 3);
        }
    }

    #[test]
    fn newer_and_edited_steps_are_refused() {
        assert!(matches!(missing(STEPS, &made(1..=4)), Err(StoreError::Newer { found: 4, known: 3 })));
        let edited = Made { number: 1, name: "one".to_owned(), checksum: "x".to_owned() };
        assert!(matches!(missing(STEPS, &[edited]), Err(StoreError::Broken(_))));
        assert_eq!(checksum("a\r\nb"), checksum("a\nb"));
    }
}
