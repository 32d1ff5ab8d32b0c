//! What people look at: what was submitted, ended or not. What is not in the tables yet is waited for, not very long.

use super::columns::{moment, signed, small, string, unsigned};
use super::fault::Fault;
use super::load::{json, task};
use super::overlay::Overlay;
use super::session::{PATIENCE, Session};
use super::{Columns, LAG_PATIENCE, sql};
use crate::contract::{InState, StoreError, Wanted};
use tidegate_core::ids::{Name, NodeId};
use tidegate_core::protocol::{AuditRow, DeclaredRow, NodeRow, TokenRow};
use tidegate_core::state::State;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

pub fn submitted(
    session: &mut Session,
    overlay: &Overlay,
    wanted: &Wanted,
    most: u32,
) -> Result<Vec<NodeRow>, StoreError> {
    let before = wanted.before.map_or(i64::MAX, |node| signed(node.0));
    let state = wanted.state.map(State::as_str);
    let name = wanted.name.as_ref().map(Name::as_str);
    let most = i64::from(most);
    rows(
        session,
        overlay,
        sql!("browse_roots"),
        &[(&before, Type::INT8), (&state, Type::TEXT), (&name, Type::TEXT), (&most, Type::INT8)],
    )
}

pub fn tree(session: &mut Session, overlay: &Overlay, root: NodeId) -> Result<Vec<NodeRow>, StoreError> {
    let mut rows = rows(session, overlay, sql!("browse_tree"), &[(&signed(root.0), Type::INT8)])?;
    rows.sort_by_key(|row| row.node);
    Ok(rows)
}

fn rows(
    session: &mut Session,
    overlay: &Overlay,
    sql: &str,
    columns: Columns<'_>,
) -> Result<Vec<NodeRow>, StoreError> {
    overlay.wait_for_tables(LAG_PATIENCE);
    session.call(PATIENCE, async |client| client.query_typed(sql, columns).await?.iter().map(task).collect())
}

/// What is retried is decided by it: who asks has to ask again while the tables are behind.
pub fn outline(session: &mut Session, overlay: &Overlay, root: NodeId) -> Result<Vec<NodeRow>, StoreError> {
    expect_tables(overlay)?;
    let mut rows = rows(session, overlay, sql!("browse_outline"), &[(&signed(root.0), Type::INT8)])?;
    rows.sort_by_key(|row| row.node);
    Ok(rows)
}

fn expect_tables(overlay: &Overlay) -> Result<(), StoreError> {
    match overlay.wait_for_tables(LAG_PATIENCE) {
        true => Ok(()),
        false => Err(StoreError::Unknown("its tables are behind what was committed".to_owned())),
    }
}

pub fn declared(session: &mut Session, overlay: &Overlay) -> Result<Vec<DeclaredRow>, StoreError> {
    overlay.wait_for_tables(LAG_PATIENCE);
    let sql = sql!("load_declared");
    session.call(PATIENCE, async |client| {
        client.query_typed(sql, &[]).await?.iter().map(super::load::declared).collect()
    })
}

pub fn tokens(session: &mut Session, overlay: &Overlay) -> Result<Vec<TokenRow>, StoreError> {
    overlay.wait_for_tables(LAG_PATIENCE);
    session.call(PATIENCE, async |client| {
        client.query_typed(sql!("token_list"), &[]).await?.iter().map(token).collect()
    })
}

fn token(row: &Row) -> Result<TokenRow, Fault> {
    Ok(TokenRow {
        id: given(row, 0)?.into(),
        name: given(row, 1)?.into(),
        hash: given(row, 2)?,
        scopes: json(row.try_get(3)?)?,
        by: given(row, 4)?.into(),
        at: moment(row, 5)?.unwrap_or_default(),
        until: moment(row, 6)?,
    })
}

pub fn audit(
    session: &mut Session,
    overlay: &Overlay,
    before: Option<u64>,
    most: u32,
) -> Result<Vec<AuditRow>, StoreError> {
    overlay.wait_for_tables(LAG_PATIENCE);
    let (before, most) = (before.map_or(i64::MAX, signed), i64::from(most));
    session.call(PATIENCE, async |client| {
        let columns: Columns = &[(&before, Type::INT8), (&most, Type::INT8)];
        client.query_typed(sql!("audit_list"), columns).await?.iter().map(audited).collect()
    })
}

fn audited(row: &Row) -> Result<AuditRow, Fault> {
    Ok(AuditRow {
        number: unsigned(row.try_get(0)?),
        at: moment(row, 1)?.unwrap_or_default(),
        by: given(row, 2)?.into(),
        what: given(row, 3)?,
        about: given(row, 4)?,
        more: string(row, 5)?,
    })
}

/// A text that is never null.
fn given(row: &Row, column: usize) -> Result<String, Fault> {
    Ok(string(row, column)?.unwrap_or_default())
}

pub fn item_states(
    session: &mut Session,
    overlay: &Overlay,
    step: NodeId,
) -> Result<Vec<InState>, StoreError> {
    // Runs are decided by how many items ended how: who asks has to ask again.
    expect_tables(overlay)?;
    session.call(PATIENCE, async |client| {
        let mut states = Vec::new();
        for row in client.query_typed(sql!("browse_items"), &[(&signed(step.0), Type::INT8)]).await? {
            if let Some(state) = State::parse(row.try_get(0)?) {
                states.push(InState { state, items: small(&row, 1)?, first: small(&row, 2)? });
            }
        }
        states.sort_by_key(|items| items.state.as_str());
        Ok(states)
    })
}
