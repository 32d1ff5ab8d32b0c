//! Letters that wait to be taken out, and those that could not be read.

use crate::contract::{LETTERS_BYTES, Letter};
use std::collections::BTreeMap;
use tidegate_core::ids::RunId;

#[derive(Debug, Default)]
pub struct Mailbox {
    posted: u64,
    waiting: BTreeMap<u64, Letter>,
    /// With the reason.
    aside: BTreeMap<u64, (Letter, String)>,
}

impl Mailbox {
    pub fn post(&mut self, id: RunId, content: &[u8]) {
        self.posted += 1;
        let letter = Letter { number: self.posted, id, content: content.to_owned() };
        self.waiting.insert(letter.number, letter);
    }

    pub fn letters(&self, after: u64, most: usize) -> Vec<Letter> {
        let mut bytes = 0;
        let waiting = self.waiting.range(after.saturating_add(1)..).map(|(_, letter)| letter);
        let fits = |(at, letter): &(usize, &Letter)| {
            bytes += letter.content.len();
            bytes <= LETTERS_BYTES || *at == 0
        };
        waiting.take(most).enumerate().take_while(fits).map(|(_, letter)| letter.clone()).collect()
    }

    pub fn take_out(&mut self, letters: &[u64]) {
        for number in letters {
            self.waiting.remove(number);
        }
    }

    pub fn set_aside(&mut self, number: u64, why: &str) {
        if let Some(letter) = self.waiting.remove(&number) {
            self.aside.insert(number, (letter, why.to_owned()));
        }
    }
}
