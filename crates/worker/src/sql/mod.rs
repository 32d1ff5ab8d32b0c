//! Statements for databases: `sql` steps and actions, in PostgreSQL, MySQL (and MariaDB) and SQLite.
//!
//! Values are bound, never put into the text of a statement. What comes back has a bound in bytes. A statement that is
//! given up is ended in its server, and the connection it ran on is never used again; one that others use next has
//! forgotten everything that was set on it. Nothing is tried again here: that is decided, durably, elsewhere.

mod address;
mod mysql;
mod pool;
mod postgres;
mod results;
mod session;
mod sqlite;
mod trouble;

use crate::ctx::Ctx;
use crate::secrets::Secrets;
use address::Address;
use pool::{Borrowed, Farewells, Pool};
use results::Results;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tidegate_core::model::{Connection, Statement, Statements, Text};
use tidegate_core::protocol::{Failure, Outcome, Payload};
use trouble::Trouble;

/// By URL, and by how many connections there may be.
type Pools = BTreeMap<(String, u32), Arc<Pool>>;

/// Asks databases. All statements share the connections that are open.
#[derive(Clone, Default)]
pub(crate) struct Databases {
    pools: Arc<Mutex<Pools>>,
    farewells: Farewells,
}

impl Databases {
    /// Dropping this ends the statement in its server, too.
    pub(crate) async fn perform(self, ctx: Ctx, order: Box<Statements>) -> Outcome {
        // What a secret is is hidden everywhere; a password that stands in a file for all to see, in errors.
        let (mut secrets, mut of_errors) = (Secrets::default(), Secrets::default());
        let asked = self.ask(&ctx, &order, &mut secrets, &mut of_errors).await;
        match asked {
            Ok(Some(output)) => Outcome::Succeeded(output),
            Ok(None) => Outcome::Stopped,
            Err(trouble) => {
                let error = format!("connection `{}`: {trouble}", order.connection.name);
                let error = of_errors.conceal(&secrets.conceal(&error));
                Outcome::Failed(Failure { cause: trouble.cause(), ..Failure::new(error) })
            }
        }
    }

    /// Waits, for a moment, until servers have heard of all that was given up.
    pub(crate) async fn close(&self) {
        self.farewells.said().await;
    }

    /// Nothing, if the attempt is to stop.
    async fn ask(
        &self,
        ctx: &Ctx,
        order: &Statements,
        secrets: &mut Secrets,
        of_errors: &mut Secrets,
    ) -> Result<Option<Payload>, Trouble> {
        let url = secrets.reveal(&order.connection.url).map_err(Trouble::Order)?;
        let passwords = address::passwords(&url);
        match order.connection.url {
            Text::Secret { .. } => passwords.iter().for_each(|password| secrets.hide(password)),
            Text::Plain(_) => passwords.iter().for_each(|password| of_errors.hide(password)),
        }
        let pool = self.pool(&order.connection, url).await?;
        let mut borrowed = tokio::select! {
            borrowed = pool.borrow(&self.farewells) => borrowed?,
            () = ctx.cancelled() => return Ok(None),
        };
        let results = Results::new(order.transaction, secrets.clone());
        let done = tokio::select! {
            done = carry_out(&mut borrowed, order, results) => done,
            () = ctx.cancelled() => {
                borrowed.give_up().await;
                return Ok(None);
            }
        };
        match done {
            Ok(results) => {
                borrowed.give_back();
                Ok(Some(results.payload()))
            }
            Err(trouble) => {
                if trouble.spares_the_session() {
                    borrowed.give_back();
                } else {
                    borrowed.give_up().await;
                }
                Err(trouble)
            }
        }
    }

    async fn pool(&self, connection: &Connection, url: String) -> Result<Arc<Pool>, Trouble> {
        let key = (url, connection.max);
        if let Some(pool) = lock(&self.pools).get(&key) {
            return Ok(pool.clone());
        }
        // Certificates may have to be read.
        let url = key.0.clone();
        let address = tokio::task::spawn_blocking(move || Address::parse(&url)).await;
        let address = address.map_err(|error| Trouble::Order(error.to_string()))?.map_err(Trouble::Order)?;
        let pool = Arc::new(Pool::new(address, connection.max));
        Ok(lock(&self.pools).entry(key).or_insert(pool).clone())
    }
}

async fn carry_out(
    borrowed: &mut Borrowed,
    order: &Statements,
    mut results: Results,
) -> Result<Results, Trouble> {
    let session = borrowed.session()?;
    if order.transaction {
        session.begin().await?;
    }
    for (index, statement) in order.statements.iter().enumerate() {
        let rows = results.next();
        let done = match params(statement) {
            Ok(params) => session.execute(&statement.query, params, rows).await,
            Err(trouble) => Err(trouble),
        };
        match done {
            Ok(rows) => results.add(rows),
            Err(trouble) if order.transaction => {
                // Whoever reads the error must find the database as it was. A session that cannot do that is given up.
                let rolled_back = trouble.spares_the_session() && session.rollback().await.is_ok();
                return Err(trouble.of_statement(index + 1, rolled_back));
            }
            Err(trouble) => return Err(trouble),
        }
    }
    if order.transaction {
        session.commit().await?;
    }
    Ok(results)
}

fn params(statement: &Statement) -> Result<Vec<Json>, Trouble> {
    serde_json::from_str(&statement.params)
        .map_err(|error| Trouble::Order(format!("the parameters: {error}")))
}

/// How many are given, against how many the statement has.
fn check_count(given: usize, wanted: usize) -> Result<(), Trouble> {
    let parameters = |count: usize| match count {
        1 => "1 parameter".to_owned(),
        count => format!("{count} parameters"),
    };
    match given == wanted {
        true => Ok(()),
        false => Err(Trouble::Order(format!(
            "the statement has {}, and `params` gives {given}",
            parameters(wanted)
        ))),
    }
}

/// Nothing that is done under these locks can be left half done.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
