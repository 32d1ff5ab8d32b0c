//! Tokens: what a caller shows. Only their hashes are kept.

use super::scope::Scope;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use subtle::ConstantTimeEq;

/// A token that is known, and what whoever has it may do.
#[derive(Clone, Debug)]
pub struct Token {
    pub name: String,
    pub scopes: BTreeSet<Scope>,
    hash: [u8; 32],
}

impl Token {
    pub fn new(name: impl Into<String>, secret: &str, scopes: impl IntoIterator<Item = Scope>) -> Token {
        Token { name: name.into(), scopes: scopes.into_iter().collect(), hash: hash(secret) }
    }

    /// Takes as long whether they differ early or late.
    pub fn is(&self, secret: &str) -> bool {
        self.hash.ct_eq(&hash(secret)).into()
    }
}

fn hash(secret: &str) -> [u8; 32] {
    Sha256::digest(secret).into()
}
