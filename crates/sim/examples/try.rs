use tidegate_sim::{campaign::campaign, world::play};
fn main() {
    let args: Vec<u64> = std::env::args().skip(1).filter_map(|a| a.parse().ok()).collect();
    if args.len() == 1 {
        let outcome = play(args[0], None, true);
        for line in &outcome.trace {
            println!("{line}");
        }
        println!("{:?} {:?}", outcome.violation.map(|v| v.to_string()), outcome.tested);
        return;
    }
    let start = std::time::Instant::now();
    let ledger = campaign(args[0], args[1], None, |_| {});
    println!(
        "{} seeds {} commands {:?} virtual {:.0}/s",
        ledger.seeds,
        ledger.commands,
        ledger.virtual_time,
        ledger.seeds as f64 / start.elapsed().as_secs_f64()
    );
    println!("{:?}\n{:?}", ledger.faults, ledger.tested);
    if let Some((seed, v)) = ledger.violation {
        println!("seed {seed}: {v}");
    }
}
