//! The command line.

use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
use tidegate::{Local, Options};
use tidegate_core::ids::TaskId;
use tidegate_core::protocol::{Declare, Payload, Submission, Write};
use tidegate_worker::{Functions, GuardianCommand};

fn main() -> anyhow::Result<()> {
    let args: Vec<String> = std::env::args().collect();
    match args.get(1).map(String::as_str) {
        Some("guardian") => {
            tidegate_worker::guardian::main();
            Ok(())
        }
        Some("run") => tokio::runtime::Runtime::new()?.block_on(run(Path::new(&args[2]))),
        _ => bail!("usage"),
    }
}

async fn run(file: &Path) -> anyhow::Result<()> {
    let text = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    let document = match tidegate_flow::parse(&file.display().to_string(), &text) {
        Ok(document) => document,
        Err(errors) => bail!("{}", errors.render(true)),
    };
    std::fs::create_dir_all(".tidegate")?;
    let guardian = GuardianCommand { program: std::env::current_exe()?, args: vec!["guardian".into()] };
    let options = Options {
        guardian,
        logs: std::sync::Arc::new(|line| println!("    | {}", line.text)),
        functions: Functions::default(),
        slots: Some(4),
    };
    let mut local = Local::open(&PathBuf::from(".tidegate/state.db"), options).await?;
    let flow = document.flows[0].clone();
    let submission = tidegate_flow::submit::submission(&flow, serde_json::json!({}))
        .map_err(|e| anyhow::anyhow!("{e}"))?;
    local
        .declare(Declare { flows: document.flows, actions: document.actions, limits: document.limits })
        .await?;
    let mut entries = local.engine.subscribe();
    let what = Submission::Run {
        flow: flow.name.clone(),
        key: None,
        inputs: Payload::new(serde_json::to_vec(&submission.inputs)?),
    };
    let (id, node) = local.submit(what, Vec::new(), 0).await?;
    println!("{id}");
    loop {
        let entry = entries.recv().await?;
        for write in &entry.writes {
            println!("{write:?}");
            if let Write::Ended { task, .. } = write
                && *task == TaskId::node(node)
            {
                println!("{}", local.output(*task, false)?);
                local.shut_down().await;
                return Ok(());
            }
        }
    }
}
