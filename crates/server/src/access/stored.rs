//! Tokens in the store: made, revoked, and looked at when somebody shows one.

use super::token::{hash, id_of, is_same, make};
use super::{Caller, Scope};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tidegate::{Error, Moment, Name, Tidegate};
use tidegate_core::protocol::{Command, TokenRow};
use tidegate_core::time::Span;
use tokio::sync::Mutex;

/// What was read from the store is believed for so long: what is revoked elsewhere is worth nothing then.
const BELIEVED: Duration = Duration::from_secs(1);
/// How long to wait at least before the store is asked again about a token that it does not know.
const ASK_AGAIN: Duration = Duration::from_millis(200);
/// While the store cannot be read, what is known is believed for longer.
const OUTAGE: Duration = Duration::from_secs(60);

/// A token as it is given out, once.
pub struct Issued {
    pub row: TokenRow,
    pub token: String,
}

/// Makes a token for somebody, on behalf of whoever the handle stands for.
pub async fn issue(
    tide: &Tidegate,
    name: &str,
    scopes: impl IntoIterator<Item = Scope>,
    lasting: Option<Span>,
    by: &str,
) -> Result<Issued, Error> {
    // Without randomness there is no secret, and nothing else can be done about it.
    let (id, token) = make().map_err(|_| Error::Closed)?;
    let at = now();
    let row = TokenRow {
        id: Name::from(id),
        name: Name::new(name),
        hash: hash(&token),
        scopes: scopes.into_iter().map(|scope| Name::new(scope.as_str())).collect(),
        by: Name::new(by),
        at,
        until: lasting.map(|span| at + span),
    };
    tide.ask(Command::SetToken(row.clone())).await?;
    Ok(Issued { row, token })
}

/// False if there is no such token.
pub async fn revoke(tide: &Tidegate, id: &str) -> Result<bool, Error> {
    let known = listed(tide).await?.iter().any(|row| row.id.as_str() == id);
    if known {
        tide.ask(Command::RevokeToken { id: Name::new(id) }).await?;
    }
    Ok(known)
}

/// All that were made and not revoked, also those whose time is over.
pub async fn listed(tide: &Tidegate) -> Result<Vec<TokenRow>, Error> {
    tide.read(|store| store.tokens()).await
}

/// Whether somebody can show one that is worth something.
pub fn is_live(row: &TokenRow) -> bool {
    row.until.is_none_or(|until| until > now())
}

fn now() -> Moment {
    Moment(jiff::Timestamp::now().as_microsecond())
}

/// What is known of the tokens in the store.
#[derive(Default)]
pub(crate) struct Known(Mutex<Read>);

#[derive(Default)]
struct Read {
    at: Option<Instant>,
    rows: BTreeMap<Name, TokenRow>,
}

impl Known {
    /// Whoever shows this token; nobody if it is not known, or its time is over.
    pub async fn caller(&self, tide: &Tidegate, token: &str) -> Result<Option<Caller>, Error> {
        let Some(id) = id_of(token) else { return Ok(None) };
        let row = self.find(tide, &Name::new(id)).await?;
        let row = row.filter(|row| is_same(&row.hash, &hash(token)) && is_live(row));
        Ok(row.map(|row| Caller {
            name: row.name.to_string(),
            scopes: row.scopes.iter().filter_map(|scope| Scope::parse(scope.as_str())).collect(),
        }))
    }

    /// What is known has changed, and is read anew before it is believed again.
    pub async fn forget(&self) {
        self.0.lock().await.at = None;
    }

    async fn find(&self, tide: &Tidegate, id: &Name) -> Result<Option<TokenRow>, Error> {
        let mut read = self.0.lock().await;
        let age = read.at.map_or(Duration::MAX, |at| at.elapsed());
        let is_fresh = if read.rows.contains_key(id) { age < BELIEVED } else { age < ASK_AGAIN };
        if !is_fresh {
            match listed(tide).await {
                Ok(rows) => {
                    let rows = rows.into_iter().map(|row| (row.id.clone(), row)).collect();
                    *read = Read { at: Some(Instant::now()), rows };
                }
                Err(error) if age > OUTAGE => return Err(error),
                Err(_) => {}
            }
        }
        Ok(read.rows.get(id).cloned())
    }
}
