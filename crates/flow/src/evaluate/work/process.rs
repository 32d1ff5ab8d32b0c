//! Orders for processes.

use super::text::{text, text_or_secret};
use crate::evaluate::render::Renderer;
use serde_json::Value as Json;
use tidegate_core::model::{Order, Surroundings};

pub(super) fn run(parts: &Json, renderer: &Renderer) -> Result<Order, String> {
    let argv = parts["argv"].as_array().into_iter().flatten().enumerate();
    let argv: Vec<String> =
        argv.map(|(index, part)| text(renderer, part, &format!("run[{index}]"))).collect::<Result<_, _>>()?;
    if argv.first().is_none_or(String::is_empty) {
        return Err("`run[0]`: there is no program".to_owned());
    }
    Ok(Order::Run { argv, surroundings: surroundings(parts, renderer)? })
}

/// The script is what stands in the file.
pub(super) fn shell(parts: &Json, renderer: &Renderer) -> Result<Order, String> {
    let script = parts["script"].as_str().unwrap_or_default().to_owned();
    Ok(Order::Shell { script, surroundings: surroundings(parts, renderer)? })
}

fn surroundings(parts: &Json, renderer: &Renderer) -> Result<Surroundings, String> {
    let variable = |(name, value): (&String, &Json)| {
        Ok((name.clone(), text_or_secret(renderer, value, &format!("env.{name}"))?))
    };
    let env = parts["env"].as_object().into_iter().flatten().map(variable).collect::<Result<_, String>>()?;
    let cwd = match &parts["cwd"] {
        Json::Null => None,
        cwd => Some(text(renderer, cwd, "cwd")?),
    };
    Ok(Surroundings { env, cwd })
}
