//! Tokens are made and revoked. Nothing here depends on them: whoever answers requests looks at them in the store.

use crate::core::Core;
use crate::ids::Name;
use crate::names;
use crate::protocol::{Answer, Refusal, TokenRow, Write};
use crate::time::Moment;

impl Core {
    pub(crate) fn set_token(&mut self, token: TokenRow, now: Moment) -> Result<Answer, Refusal> {
        names::of_token(&token)?;
        self.write(Write::TokenSet(Box::new(TokenRow { at: now, ..token })));
        Ok(Answer::Done)
    }

    /// Whether or not there is one.
    pub(crate) fn revoke_token(&mut self, id: Name) -> Result<Answer, Refusal> {
        self.write(Write::TokenGone { id });
        Ok(Answer::Done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Command;
    use crate::testkit::Kit;

    #[test]
    fn a_token_has_a_name_and_the_time_of_its_command() {
        let mut kit = Kit::new(1);
        let token = TokenRow {
            id: "t1".into(),
            name: "ci".into(),
            hash: "00".to_owned(),
            scopes: vec!["run".into()],
            by: "ann".into(),
            at: Moment(0),
            until: None,
        };
        kit.apply(Command::SetToken(token.clone()));
        assert!(kit.writes.contains(&Write::TokenSet(Box::new(TokenRow { at: kit.now, ..token.clone() }))));
        kit.apply(Command::RevokeToken { id: "t1".into() });
        assert!(kit.writes.contains(&Write::TokenGone { id: "t1".into() }));
        let nameless = TokenRow { name: "".into(), ..token };
        assert_eq!(kit.refused(Command::SetToken(nameless)), Refusal::NoName);
    }
}
