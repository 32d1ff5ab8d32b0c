//! Families of metrics, one after the other. Without labels there are no braces.

use prometheus_client::encoding::{DescriptorEncoder, EncodeGaugeValue, NoLabelSet};
use prometheus_client::metrics::MetricType;
use std::fmt;
use tidegate_core::{WAIT_BOUNDS, Waits};

type Labels<'a, const N: usize> = [(&'static str, &'a str); N];

pub struct Page<'a>(pub DescriptorEncoder<'a>);

impl Page<'_> {
    pub fn gauge<'l, const N: usize, V: EncodeGaugeValue>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (Labels<'l, N>, V)>,
    ) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (labels, value) in values {
            match N {
                0 => family.encode_gauge(&value)?,
                _ => family.encode_family(&labels)?.encode_gauge(&value)?,
            }
        }
        Ok(())
    }

    /// The name comes without `_total`.
    pub fn counter<'l, const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (Labels<'l, N>, u64)>,
    ) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (labels, value) in values {
            match N {
                0 => family.encode_counter::<NoLabelSet, _, u64>(&value, None)?,
                _ => family.encode_family(&labels)?.encode_counter::<NoLabelSet, _, u64>(&value, None)?,
            }
        }
        Ok(())
    }

    pub fn histogram<'l, 'w, const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (Labels<'l, N>, &'w Waits)>,
    ) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, help, None, MetricType::Histogram)?;
        let seconds = |micros: u64| micros as f64 / 1_000_000.0;
        let bounds = WAIT_BOUNDS.iter().map(|bound| seconds(bound.0)).chain([f64::INFINITY]);
        for (labels, waits) in values {
            let buckets: Vec<(f64, u64)> = bounds.clone().zip(waits.buckets).collect();
            let (sum, count) = (seconds(waits.sum.0), waits.count());
            match N {
                0 => family.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)?,
                _ => {
                    family
                        .encode_family(&labels)?
                        .encode_histogram::<NoLabelSet>(sum, count, &buckets, None)?;
                }
            }
        }
        Ok(())
    }
}
