//! Admission decides as its naive twin does, command by command.

use tidegate_sim::twin;

/// Sequences of the normal test run. `examples/twin.rs` runs as many as wanted.
const SEQUENCES: u64 = 5_000;

#[test]
fn admission_decides_as_its_twin_does() {
    // Two threads, because a sequence depends on nothing but its seed.
    let half = SEQUENCES / 2;
    let other = std::thread::spawn(move || twin::run(half, half));
    let mut stats = twin::run(0, half).unwrap_or_else(|mismatch| panic!("{mismatch}"));
    stats.add(&other.join().expect("the other half ends").unwrap_or_else(|mismatch| panic!("{mismatch}")));
    println!("{stats:#?}");
    assert_eq!(stats.sequences, SEQUENCES);
    // A generator that no longer gets there would prove nothing.
    assert!(stats.commands > 200 * SEQUENCES && stats.starts > 50 * SEQUENCES, "{stats:?}");
    assert!(stats.with_a_reserver > stats.commands / 20, "{stats:?}");
    assert!(stats.most_reservers >= 8, "{stats:?}");
    assert!(stats.displaced > SEQUENCES / 4, "{stats:?}");
    assert!(stats.continued > stats.commands / 100, "{stats:?}");
    assert!(stats.parked_under_a_pace > stats.commands / 10, "{stats:?}");
    assert!(stats.stopped_by_a_pace > SEQUENCES / 10, "{stats:?}");
    assert!(stats.resolved_anew > SEQUENCES / 2, "{stats:?}");
}

#[test]
fn a_seed_plays_the_same_commands_every_time() {
    let play = || twin::compare(7, twin::STEPS).unwrap_or_else(|mismatch| panic!("{mismatch}"));
    assert_eq!(play(), play());
}
