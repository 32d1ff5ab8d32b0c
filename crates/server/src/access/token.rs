//! Tokens: what a caller shows. Only their hashes are kept.

use super::scope::Scope;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use subtle::ConstantTimeEq;

/// What every token that is made here begins with, so that it is recognised where it should not be.
const PREFIX: &str = "tide_";
/// Bytes of the part that is no secret, and of the one that is.
const ID: usize = 8;
const SECRET: usize = 32;

/// A token that is known, and what whoever has it may do.
#[derive(Clone, Debug)]
pub struct Token {
    pub name: String,
    pub scopes: BTreeSet<Scope>,
    hash: String,
}

impl Token {
    pub fn new(name: impl Into<String>, secret: &str, scopes: impl IntoIterator<Item = Scope>) -> Token {
        Token { name: name.into(), scopes: scopes.into_iter().collect(), hash: hash(secret) }
    }

    pub fn is(&self, secret: &str) -> bool {
        is_same(&self.hash, &hash(secret))
    }
}

/// A new one: its id and all of it.
pub(super) fn make() -> Result<(String, String), getrandom::Error> {
    let mut bytes = [0; ID + SECRET];
    getrandom::fill(&mut bytes)?;
    let (id, secret) = bytes.split_at(ID);
    let id = hex(id);
    let token = format!("{PREFIX}{id}_{}", hex(secret));
    Ok((id, token))
}

/// The part of a token that is no secret, if it has the form of those that are made here.
pub(super) fn id_of(token: &str) -> Option<&str> {
    let (id, secret) = token.strip_prefix(PREFIX)?.split_once('_')?;
    (id.len() == 2 * ID && secret.len() == 2 * SECRET).then_some(id)
}

pub(super) fn hash(token: &str) -> String {
    hex(&Sha256::digest(token))
}

/// Takes as long whether they differ early or late.
pub(super) fn is_same(hash: &str, other: &str) -> bool {
    hash.as_bytes().ct_eq(other.as_bytes()).into()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_differ_and_tell_their_id() {
        let (id, token) = make().unwrap();
        let (other, another) = make().unwrap();
        assert!(id != other && token != another);
        assert_eq!(id_of(&token), Some(id.as_str()));
        assert!(is_same(&hash(&token), &hash(&token)) && !is_same(&hash(&token), &hash(&another)));
        for wrong in ["", "tide_", "tide_a_b", &token[1..], &token[..token.len() - 1]] {
            assert_eq!(id_of(wrong), None, "{wrong}");
        }
    }
}
