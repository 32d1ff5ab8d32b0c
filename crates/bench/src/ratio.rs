//! Two sides in turns: machines drift, so only what was measured side by side is compared.

use anyhow::Result;

/// What came out of some alternations.
#[derive(Clone, PartialEq, Debug)]
pub struct Ratio {
    /// The median of the first side's values.
    pub value: f64,
    /// The median of the ratios of the pairs, first side to second, …
    pub median: f64,
    /// … and an interval that holds the true one in at least 93 of 100 cases, whatever the noise looks like.
    pub low: f64,
    pub high: f64,
    /// All of them, in the order of the turns.
    pub all: Vec<f64>,
}

impl Ratio {
    /// Of pairs that were measured next to each other.
    pub fn of(pairs: &[(f64, f64)]) -> Ratio {
        let ratios: Vec<f64> = pairs.iter().map(|(first, second)| first / second).collect();
        let (low, high) = interval(&ratios);
        let value = median(&pairs.iter().map(|(first, _)| *first).collect::<Vec<_>>());
        Ratio { value, median: median(&ratios), low, high, all: ratios }
    }

    /// Of values that have nothing beside them but a bound.
    pub fn to_bound(values: &[f64], bound: f64) -> Ratio {
        Ratio::of(&values.iter().map(|value| (*value, bound)).collect::<Vec<_>>())
    }
}

/// Measures both sides so many times; who goes first changes from turn to turn.
pub async fn alternate(
    times: usize,
    mut first: impl AsyncFnMut() -> Result<f64>,
    mut second: impl AsyncFnMut() -> Result<f64>,
) -> Result<Ratio> {
    let mut pairs = Vec::new();
    for turn in 0..times {
        let pair = if turn % 2 == 0 {
            (first().await?, second().await?)
        } else {
            let late = second().await?;
            (first().await?, late)
        };
        pairs.push(pair);
    }
    Ok(Ratio::of(&pairs))
}

pub fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// A value that was measured.
pub fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted.get(((sorted.len().max(1) - 1) as f64 * share).round() as usize).copied().unwrap_or(f64::NAN)
}

/// How sure an interval has to be. Five values reach 0.9375, by their least and greatest.
const SURE: f64 = 0.93;

/// The narrowest pair of order statistics that encloses the median with that probability: each value is above or
/// below it with the same chance, and nothing else has to be known.
fn interval(values: &[f64]) -> (f64, f64) {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let count = sorted.len();
    // The chance of at most `outside` values below the median, as that many coins that all fall alike.
    let mut chance = 0.5f64.powi(count as i32);
    let (mut tail, mut outside) = (chance, 0);
    loop {
        let next = chance * (count - outside) as f64 / (outside + 1) as f64;
        if 2 * (outside + 2) > count || 1.0 - 2.0 * (tail + next) < SURE {
            break;
        }
        (chance, tail, outside) = (next, tail + next, outside + 1);
    }
    let pick = |at: usize| sorted.get(at).copied().unwrap_or(f64::NAN);
    (pick(outside), pick(count.saturating_sub(outside + 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_as_narrow_as_it_may_be() {
        let values = |count: u32| (1..=count).map(f64::from).collect::<Vec<_>>();
        assert_eq!(interval(&values(5)), (1.0, 5.0));
        assert_eq!(interval(&values(9)), (2.0, 8.0), "0.961; one more would be 0.820");
        assert_eq!(interval(&values(15)), (4.0, 12.0), "0.965; one more would be 0.882");
    }

    #[test]
    fn a_ratio_is_that_of_neighbours() {
        // The machine became twice as slow on the way: the ratio does not notice.
        let ratio = Ratio::of(&[(10.0, 5.0), (10.0, 5.0), (5.0, 2.5), (5.0, 2.5), (5.0, 2.4)]);
        assert_eq!((ratio.value, ratio.median, ratio.low), (5.0, 2.0, 2.0));
        assert!(ratio.high > 2.0);
        assert_eq!(Ratio::to_bound(&[1.0, 3.0, 2.0], 4.0).median, 0.5);
    }
}
