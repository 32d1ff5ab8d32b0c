//! `tidegate serve` and `tidegate dev`: an engine that is asked over HTTP.
//!
//! - [`reload`]: files that are declared, and declared again when they change

mod reload;

use crate::args;
use crate::failure::{Exit, Failure};
use crate::out::say;
use crate::run::{Interrupts, guardian, make_directory};
use crate::server::{Note, TOKEN};
use reload::Reload;
use std::net::SocketAddr;
use tidegate::{Tidegate, Work, Working};
use tidegate_server::{Access, App, Scope, Token, is_live, listed};
use tokio::net::TcpListener;
use tokio::sync::watch;

pub async fn serve(options: &args::Serve, quiet: bool) -> Result<Exit, Failure> {
    let serving = Serving::begin(&options.store, options.listen, quiet).await?;
    serving.until_interrupted(None, quiet).await
}

pub async fn dev(options: &args::Dev, quiet: bool) -> Result<Exit, Failure> {
    let mut reload = Reload::of(&options.directory);
    let serving = Serving::begin(&options.here.place(), options.listen, quiet).await?;
    reload.look(&serving.tide, quiet).await;
    let working = work(&serving.tide, &options.here)?.start().await;
    let working = working.map_err(|error| engine_failed(&error, &serving.place))?;
    let tide = serving.tide.clone();
    let reloading = tokio::spawn(async move { reload.follow(&tide, quiet).await });
    let exit = serving.until_interrupted(Some(working), quiet).await;
    reloading.abort();
    exit
}

/// An engine, and the port on which it is asked.
struct Serving {
    tide: Tidegate,
    place: args::Place,
    listener: TcpListener,
    access: Access,
    interrupts: Interrupts,
    /// For commands in the same place.
    _note: Option<Note>,
}

impl Serving {
    async fn begin(place: &args::Place, listen: SocketAddr, quiet: bool) -> Result<Serving, Failure> {
        let given = given_token()?;
        let is_new = matches!(place, args::Place::File(store) if !store.path.exists());
        if is_new && given.is_none() && !listen.ip().is_loopback() {
            return Err(no_token(listen));
        }
        let interrupts = Interrupts::listen()?;
        // Before anything is opened: two servers of one address would otherwise share a store for a moment.
        let listener = TcpListener::bind(listen).await.map_err(|error| {
            Failure::new("listen", format!("nobody can be listened to at {listen}: {error}"))
                .help("choose another address with --listen")
        })?;
        if let args::Place::File(store) = place {
            make_directory(&store.path)?;
        }
        let builder = Tidegate::builder(&place.address()?).share_file();
        let tide = builder.open().await.map_err(|error| engine_failed(&error, place))?;
        let access = access(&tide, given, listen, place).await?;
        let address = listener.local_addr().unwrap_or(listen);
        let note = match place {
            args::Place::File(store) => Note::leave(&store.path, address),
            args::Place::Postgres(_) => None,
        };
        if !quiet {
            say(format!("tidegate listens at http://{address}, see http://{address}/docs"));
        }
        Ok(Serving { tide, place: place.clone(), listener, access, interrupts, _note: note })
    }

    /// The first interrupt lets what is under way end; the second does not wait.
    async fn until_interrupted(mut self, working: Option<Working>, quiet: bool) -> Result<Exit, Failure> {
        let (close, closing) = watch::channel(false);
        let app = App::new(self.tide.clone(), self.access, closing);
        let served = tokio::spawn(tidegate_server::serve(self.listener, app));
        self.interrupts.next().await;
        if !quiet {
            say("ending; interrupt again not to wait");
        }
        let tide = self.tide;
        let end = async move {
            let _ = close.send(true);
            if let Some(mut working) = working {
                let _ = working.stop().await;
            }
            let _ = served.await;
            tide.close().await;
        };
        tokio::select! {
            () = end => Ok(Exit::Success),
            () = self.interrupts.next() => Ok(Exit::Interrupted),
        }
    }
}

/// A token that may do everything, from the environment.
fn given_token() -> Result<Option<Token>, Failure> {
    match std::env::var(TOKEN) {
        Ok(token) if token.len() >= 32 => Ok(Some(Token::new("admin", &token, [Scope::Admin]))),
        Ok(_) => Err(Failure::new("token", format!("{TOKEN} must have 32 letters at least"))
            .exit(Exit::Invalid)
            .help("make one with `openssl rand -hex 32`")),
        Err(_) => Ok(None),
    }
}

/// Without a token only this machine is served: whoever reaches the port could do everything.
async fn access(
    tide: &Tidegate,
    given: Option<Token>,
    listen: SocketAddr,
    place: &args::Place,
) -> Result<Access, Failure> {
    if given.is_some() {
        return Ok(Access::Tokens(given.into_iter().collect()));
    }
    let stored = listed(tide).await.map_err(|error| engine_failed(&error, place))?;
    match stored.iter().any(is_live) {
        true => Ok(Access::Tokens(Vec::new())),
        false if listen.ip().is_loopback() => Ok(Access::Loopback),
        false => Err(no_token(listen)),
    }
}

fn no_token(listen: SocketAddr) -> Failure {
    let sentence = format!("whoever reaches {listen} could do everything: a token is needed");
    let make = "`tidegate token create NAME --scope admin --store PLACE`";
    let help = format!("make one with {make}, set {TOKEN}, or listen at 127.0.0.1");
    Failure::new("no-token", sentence).exit(Exit::Refused).help(help)
}

fn work(tide: &Tidegate, here: &args::Here) -> Result<Work, Failure> {
    let mut work = tide.work(here.io_slots).processes(guardian()?);
    if let Some(slots) = here.slots {
        work = work.process_slots(slots);
    }
    if here.allow_link_local {
        work = work.ask_link_local();
    }
    Ok(work)
}

pub fn engine_failed(error: &tidegate::Error, place: &args::Place) -> Failure {
    match (error, place) {
        (error, args::Place::File(store)) => Failure::engine(error, &store.path),
        (tidegate::Error::Store(error) | tidegate::Error::Outage(error), args::Place::Postgres(url)) => {
            Failure::database(error, url)
        }
        (error, args::Place::Postgres(_)) => Failure::new("engine", error.to_string()),
    }
}
