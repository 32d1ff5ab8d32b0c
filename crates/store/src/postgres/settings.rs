//! What is not a task, written into the tables: limits, paces, definitions and workers. They are few, and seldom.

use super::batch::Batch;
use super::columns::{Time, signed, text};
use super::fault::Fault;
use super::sql;
use crate::contract::{AUDIT_STAYS, StoreError};
use crate::fold::Fold;
use crate::words;
use serde::Serialize;
use tidegate_core::protocol::{AuditRow, DeclaredRow, LimitRow, TokenRow, WorkerRow};
use tokio_postgres::Client;
use tokio_postgres::types::{ToSql, Type};

type Columns<'a> = &'a [(&'a (dyn ToSql + Sync), Type)];

pub async fn write(client: &Client, fold: &Fold) -> Result<(), Fault> {
    for key in &fold.limits {
        match fold.new.limits.get(key) {
            Some(row) => set_limit(client, row).await?,
            None => run(client, sql!("limit_clear"), &[(&json(key)?, Type::TEXT)]).await?,
        }
    }
    let mut paces = Vec::with_capacity(fold.new.paces.len());
    for (key, pace) in &fold.new.paces {
        paces.push((json(key)?, key.to_string(), json(pace)?));
    }
    Batch::of(&paces)
        .word(|(key, ..)| Some(key))
        .word(|(_, name, _)| Some(name))
        .word(|(.., pace)| Some(pace))
        .run(client, sql!("pace_set"))
        .await?;
    for row in &fold.new.declared {
        declare(client, row).await?;
    }
    for name in &fold.workers {
        match fold.new.workers.get(name) {
            Some(row) => set_worker(client, row).await?,
            None => run(client, sql!("worker_remove"), &[(&text(name.as_str()), Type::TEXT)]).await?,
        }
    }
    for id in &fold.tokens {
        match fold.new.tokens.get(id) {
            Some(row) => set_token(client, row).await?,
            None => run(client, sql!("token_remove"), &[(&text(id.as_str()), Type::TEXT)]).await?,
        }
    }
    for row in fold.new.audit.values() {
        audit(client, row).await?;
    }
    Ok(())
}

async fn set_limit(client: &Client, row: &LimitRow) -> Result<(), Fault> {
    let (key, name) = (json(&row.key)?, row.key.to_string());
    let set = row.set.as_ref().map(json).transpose()?;
    let columns: Columns =
        &[(&key, Type::TEXT), (&text(&name), Type::TEXT), (&set, Type::TEXT), (&row.paused, Type::BOOL)];
    run(client, sql!("limit_set"), columns).await
}

async fn declare(client: &Client, row: &DeclaredRow) -> Result<(), Fault> {
    let (kind, name, version) = words::of_declared(row);
    let (name, version, definition) = (text(name), i64::from(version), json(row)?);
    let columns: Columns =
        &[(&kind, Type::TEXT), (&name, Type::TEXT), (&version, Type::INT8), (&definition, Type::TEXT)];
    run(client, sql!("declare_clear"), &columns[..3]).await?;
    run(client, sql!("declare_add"), columns).await
}

async fn set_worker(client: &Client, row: &WorkerRow) -> Result<(), Fault> {
    let (incarnation, skills) = (signed(row.incarnation), json(&row.skills)?);
    let (process, io) = (i64::from(row.slots.process), i64::from(row.slots.io));
    let columns: Columns = &[
        (&text(row.worker.as_str()), Type::TEXT),
        (&incarnation, Type::INT8),
        (&skills, Type::TEXT),
        (&process, Type::INT8),
        (&io, Type::INT8),
    ];
    run(client, sql!("worker_set"), columns).await
}

async fn set_token(client: &Client, row: &TokenRow) -> Result<(), Fault> {
    let (scopes, at, until) = (json(&row.scopes)?, Time(row.at), row.until.map(Time));
    let columns: Columns = &[
        (&text(row.id.as_str()), Type::TEXT),
        (&text(row.name.as_str()), Type::TEXT),
        (&row.hash, Type::TEXT),
        (&scopes, Type::TEXT),
        (&text(row.by.as_str()), Type::TEXT),
        (&at, Type::TIMESTAMPTZ),
        (&until, Type::TIMESTAMPTZ),
    ];
    run(client, sql!("token_set"), columns).await
}

async fn audit(client: &Client, row: &AuditRow) -> Result<(), Fault> {
    let (number, at) = (signed(row.number), Time(row.at));
    let columns: Columns = &[
        (&number, Type::INT8),
        (&at, Type::TIMESTAMPTZ),
        (&text(row.by.as_str()), Type::TEXT),
        (&row.what, Type::TEXT),
        (&text(&row.about), Type::TEXT),
        (&row.more.as_deref().map(text), Type::TEXT),
    ];
    run(client, sql!("audit_add"), columns).await?;
    run(client, sql!("audit_forget"), &[(&Time(row.at - AUDIT_STAYS), Type::TIMESTAMPTZ)]).await
}

async fn run(client: &Client, sql: &str, columns: Columns<'_>) -> Result<(), Fault> {
    client.execute_typed(sql, columns).await?;
    Ok(())
}

fn json(value: &impl Serialize) -> Result<String, Fault> {
    serde_json::to_string(value).map_err(|error| Fault::Said(StoreError::Broken(error.to_string())))
}
