//! `tidegate token`: who may ask a server. The first is made where the store is, before anybody listens.

use crate::args::{self, Place, TokenCommand};
use crate::failure::{Exit, Failure};
use crate::operate::{Reading, Table, list, show, text};
use crate::out::{print, say};
use crate::run::make_directory;
use crate::serve::engine_failed;
use crate::server::{connect, failed, segment};
use serde_json::{Value as Json, json};
use std::time::Duration;
use tidegate::Tidegate;
use tidegate_core::time::Span;
use tidegate_remote::Method;
use tidegate_server::{Scope, issue};

/// Who made a token without asking a server.
const HERE: &str = "command line";

pub async fn token(options: &args::Token, quiet: bool) -> Result<Exit, Failure> {
    match &options.command {
        TokenCommand::Create(options) => {
            let token = match &options.store {
                Some(place) => create_here(options, place).await?,
                None => create(options).await?,
            };
            if !quiet {
                say("this is shown once:");
            }
            print(token)?;
            Ok(Exit::Success)
        }
        TokenCommand::List(shown) => show(shown, &Reading { path: "/api/v1/tokens", items: "", draw }).await,
        TokenCommand::Revoke(options) => {
            let client = connect(&options.server)?;
            let path = format!("/api/v1/tokens/{}", segment(&options.id));
            let told: Result<Json, _> = client.ask(Method::DELETE, &path, None::<&()>, Duration::ZERO).await;
            told.map_err(|error| failed(&error))?;
            if !quiet {
                say(format!("{} is worth nothing any more", options.id));
            }
            Ok(Exit::Success)
        }
    }
}

fn scopes(options: &args::TokenCreate) -> Vec<Scope> {
    options.scope.iter().filter_map(|scope| Scope::parse(scope)).collect()
}

async fn create(options: &args::TokenCreate) -> Result<String, Failure> {
    let client = connect(&options.server)?;
    let names: Vec<&str> = scopes(options).into_iter().map(Scope::as_str).collect();
    let mut new = json!({ "name": options.name, "scopes": names });
    if let Some(span) = options.lasting {
        new["lasting"] = json!(format!("{}s", span.0.div_ceil(Span::seconds(1).0)));
    }
    let made: Json = client.post("/api/v1/tokens", &new).await.map_err(|error| failed(&error))?;
    Ok(text(&made["token"]))
}

/// In a store that no server has.
async fn create_here(options: &args::TokenCreate, place: &Place) -> Result<String, Failure> {
    if let Place::File(store) = place {
        make_directory(&store.path)?;
    }
    let tide = Tidegate::builder(&place.address()?).share_file().open().await;
    let tide = tide.map_err(|error| engine_failed(&error, place))?.on_behalf_of(HERE);
    let issued = issue(&tide, &options.name, scopes(options), options.lasting, HERE).await;
    let issued = issued.map_err(|error| engine_failed(&error, place));
    tide.close().await;
    Ok(issued?.token)
}

fn draw(tokens: &Json) -> Vec<String> {
    let mut table = Table::new(&["ID", "NAME", "SCOPES", "MADE", "BY", "ENDS"]);
    for token in list(tokens) {
        let scopes: Vec<String> = list(&token["scopes"]).iter().map(text).collect();
        let ends = if token["expired"] == true { "over".to_owned() } else { text(&token["expires"]) };
        let cell = |field: &str| text(&token[field]);
        table.row([cell("id"), cell("name"), scopes.join(","), cell("created"), cell("created_by"), ends]);
    }
    table.lines()
}
