//! A flow whose steps are functions of this program.

use serde::Deserialize;
use serde_json::{Value, json};
use tidegate::{Ctx, Error, Tidegate};

const FLOW: &str = r#"
flow: report
inputs:
  cities: { type: list, required: true }
steps:
  weather:
    with_items: "{{ inputs.cities }}"
    concurrency: 2                        # a window: never more than two items at once
    action: weather
    inputs: { city: "{{ item }}" }
  summary:
    after: [weather]
    action: summary
    inputs: { reports: "{{ steps.weather.output['items'] | map(attribute='output') | list }}" }
outputs:
  text: "{{ steps.summary.output }}"
"#;

#[derive(Deserialize)]
struct City {
    city: String,
}

async fn weather(_: Ctx, City { city }: City) -> Result<String, String> {
    Ok(format!("{city}: {} degrees", city.len() + 10))
}

#[derive(Deserialize)]
struct Reports {
    reports: Vec<String>,
}

async fn summary(_: Ctx, input: Reports) -> Result<String, String> {
    Ok(input.reports.join(", "))
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let tide = Tidegate::open("memory:").await?;
    tide.action("weather", weather);
    tide.action("summary", summary);
    tide.flow(FLOW)?;
    let mut working = tide.work(8).start().await?;

    let run = tide.submit("report", &json!({ "cities": ["Oslo", "Lisbon", "Graz"] })).await?;
    let outputs: Value = run.result().await?;
    println!("{}", outputs["text"].as_str().unwrap_or_default());

    // Inputs are checked against their types before anything is submitted.
    if let Err(wrong) = tide.submit("report", &json!({ "cites": ["Oslo"] })).await {
        println!("{wrong}");
    }
    working.stop().await
}
