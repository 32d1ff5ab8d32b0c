//! Who may commit, by the database's clock, and where the servers are.

use super::columns::{Time, signed, small, string, text};
use super::session::{PATIENCE, Session};
use super::{Columns, sql};
use crate::contract::{Contact, Leader, StoreError, Term};
use tidegate_core::ids::Name;
use tidegate_core::time::Span;
use tokio_postgres::types::Type;

pub fn lead(
    session: &mut Session,
    server: &Name,
    mine: Option<u32>,
    lease: Span,
) -> Result<Option<Term>, StoreError> {
    let (server, held, lease) = (text(server.as_str()), mine.map(i64::from), signed(lease.0));
    session.call(PATIENCE, async |client| {
        let columns: Columns = &[(&server, Type::TEXT), (&held, Type::INT8), (&lease, Type::INT8)];
        let Some(row) = client.query_typed_opt(sql!("lead"), columns).await? else { return Ok(None) };
        let (term, clock) = (small(&row, 0)?, row.try_get::<_, Time>(1)?.0);
        if mine != Some(term) {
            client.query_typed(sql!("hint"), &[]).await?;
        }
        Ok(Some(Term { term, clock, alone: false, clean: false }))
    })
}

pub fn resign(session: &mut Session, term: u32) -> Result<(), StoreError> {
    let term = i64::from(term);
    session.call(PATIENCE, async |client| {
        if client.query_typed_opt(sql!("resign"), &[(&term, Type::INT8)]).await?.is_some() {
            client.query_typed(sql!("hint"), &[]).await?;
        }
        Ok(())
    })
}

pub fn announce(session: &mut Session, server: &Name, contact: &Contact) -> Result<(), StoreError> {
    let (server, address, token) = (text(server.as_str()), text(&contact.address), text(&contact.token));
    session.call(PATIENCE, async |client| {
        let columns: Columns = &[(&server, Type::TEXT), (&address, Type::TEXT), (&token, Type::TEXT)];
        client.execute_typed(sql!("announce"), columns).await?;
        Ok(())
    })
}

pub fn leader(session: &mut Session) -> Result<Option<Leader>, StoreError> {
    session.call(PATIENCE, async |client| {
        let Some(row) = client.query_typed_opt(sql!("leader_get"), &[]).await? else { return Ok(None) };
        let server = string(&row, 0)?.unwrap_or_default().into();
        let contact = match (string(&row, 1)?, string(&row, 2)?) {
            (Some(address), Some(token)) => Some(Contact { address, token }),
            _ => None,
        };
        Ok(Some(Leader { server, contact }))
    })
}
