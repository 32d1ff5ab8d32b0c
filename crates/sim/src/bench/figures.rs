//! One situation, measured at all sizes in turns.

use super::SIZES;
use super::clock::resident;
use super::situation::Situation;
use super::station::{CYCLES_A_BATCH, Station};

/// Turns of the sizes, after one that is not counted.
const TURNS: usize = 21;
/// Batches of one turn.
const BATCHES: usize = 16;
/// Batches in which every command is timed by itself.
const TIMED_BATCHES: usize = 80;

/// What was found at one size.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Figures {
    pub waiting: usize,
    /// Nanoseconds a cycle: the best of all turns, because nothing makes a program faster than it is.
    pub cycle: f64,
    /// Nanoseconds a cycle more than at the first size: the median of the differences within a turn, …
    pub extra: f64,
    /// … and the quartiles of these.
    pub extra_low: f64,
    pub extra_high: f64,
    /// The longest command in nanoseconds, while the line grew or in steady operation.
    pub longest: u64,
    /// All but one of 10,000 commands take no longer.
    pub nearly_all: u64,
    /// Bytes that one waiting task takes; not measured at the first size, which is smaller than the noise.
    pub weight: Option<f64>,
}

impl Figures {
    /// As one line, for the process that asked.
    pub fn to_line(&self) -> String {
        let Figures { waiting, cycle, extra, extra_low, extra_high, longest, nearly_all, weight } = self;
        let weight = weight.unwrap_or(f64::NAN);
        format!("{waiting} {cycle} {extra} {extra_low} {extra_high} {longest} {nearly_all} {weight}")
    }

    pub fn from_line(line: &str) -> Option<Figures> {
        let mut words = line.split(' ').map(|word| word.parse::<f64>().ok());
        let mut next = || words.next()?;
        Some(Figures {
            waiting: next()? as usize,
            cycle: next()?,
            extra: next()?,
            extra_low: next()?,
            extra_high: next()?,
            longest: next()? as u64,
            nearly_all: next()? as u64,
            weight: Some(next()?).filter(|weight| !weight.is_nan()),
        })
    }
}

/// Measures a situation. To be called once in a process: what was freed before hides what is needed now.
pub fn measure(situation: Situation) -> Vec<Figures> {
    let (mut stations, mut times, mut weights) = (Vec::new(), Vec::new(), Vec::new());
    for waiting in SIZES {
        let (station, noted, weight) = timed_station(situation, waiting);
        stations.push(station);
        times.push(noted);
        weights.push(weight);
    }
    let turns = take_turns(&mut stations);
    drop(stations);
    for (times, waiting) in times.iter_mut().zip(SIZES) {
        let (_, again, _) = timed_station(situation, waiting);
        // The same commands again: what took long only once was the machine and not the command.
        times.iter_mut().zip(again).for_each(|(first, second)| *first = second.min(*first));
        times.sort_unstable();
    }
    let figures = |at: usize| {
        let mut extras: Vec<f64> = turns.iter().map(|turn| turn[at] - turn[0]).collect();
        let mut cycles: Vec<f64> = turns.iter().map(|turn| turn[at]).collect();
        Figures {
            waiting: SIZES[at],
            cycle: quantile(&mut cycles, 0.0),
            extra: quantile(&mut extras, 0.5),
            extra_low: quantile(&mut extras, 0.25),
            extra_high: quantile(&mut extras, 0.75),
            longest: times[at].last().copied().unwrap_or(0),
            nearly_all: times[at][times[at].len() - 1 - times[at].len() / 10_000],
            weight: (at > 0).then_some(weights[at]),
        }
    };
    (0..SIZES.len()).map(figures).collect()
}

/// A core in which so many wait, how long each command took, and how many bytes each waiting task takes.
fn timed_station(situation: Situation, waiting: usize) -> (Station, Vec<u64>, f64) {
    // Touched before anything is weighed.
    let mut times = vec![u64::MAX; waiting + 2 * TIMED_BATCHES * CYCLES_A_BATCH];
    times.clear();
    let mut station = Station::full(situation);
    let before = resident();
    station.fill(waiting, &mut times);
    let weight = resident().saturating_sub(before) as f64 / waiting as f64;
    station.time_each(TIMED_BATCHES, &mut times);
    (station, times, weight)
}

/// Only drives a core of that size, for as many batches: something to look at with a profiler.
pub fn drive(situation: Situation, waiting: usize, batches: usize) {
    let mut station = Station::full(situation);
    station.fill(waiting, &mut Vec::new());
    let cycle = station.pace(batches);
    eprintln!("{cycle:.0} ns a cycle");
}

/// Nanoseconds a cycle, by turn and size.
fn take_turns(stations: &mut [Station]) -> Vec<Vec<f64>> {
    let mut turn = || stations.iter_mut().map(|station| station.pace(BATCHES)).collect();
    let _warm_up: Vec<f64> = turn();
    (0..TURNS).map(|_| turn()).collect()
}

fn quantile(values: &mut [f64], share: f64) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[((values.len() - 1) as f64 * share).round() as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_pass_from_process_to_process() {
        let some = Figures {
            waiting: 1_000,
            cycle: 1234.5,
            extra: -3.25,
            extra_low: -4.0,
            extra_high: 1.0,
            longest: 77_000,
            nearly_all: 9_000,
            weight: Some(391.5),
        };
        for figures in [some, Figures { weight: None, ..some }] {
            assert_eq!(Figures::from_line(&figures.to_line()), Some(figures));
        }
        assert_eq!(Figures::from_line("1000 2"), None);
    }

    #[test]
    fn quantiles_are_values_that_were_measured() {
        let mut values = [5.0, 1.0, 4.0, 2.0, 3.0];
        assert_eq!([0.0, 0.25, 0.5, 1.0].map(|share| quantile(&mut values, share)), [1.0, 2.0, 3.0, 5.0]);
    }
}
