//! What the samples of timed calls come to.

/// Samples, in nanoseconds of one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Times {
    /// Half of the samples are shorter.
    pub median: f64,
    /// A tenth is shorter.
    pub low: f64,
    /// A tenth is longer.
    pub high: f64,
    /// How many samples.
    pub samples: usize,
}

impl Times {
    /// The figures of `samples`; none without any.
    pub fn of(samples: &[f64]) -> Option<Self> {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = |share: f64| {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                clippy::cast_precision_loss,
                reason = "an index of few samples"
            )]
            let index = ((sorted.len() as f64 - 1.0) * share).round() as usize;
            sorted.get(index).copied()
        };
        Some(Self { median: at(0.5)?, low: at(0.1)?, high: at(0.9)?, samples: sorted.len() })
    }

    /// Bytes a second, when one run moves `bytes`.
    #[expect(clippy::cast_precision_loss, reason = "a rate needs no more digits")]
    pub fn rate(&self, bytes: u64) -> f64 {
        bytes as f64 / (self.median / 1e9)
    }
}

/// A time for people.
pub fn time(nanoseconds: f64) -> String {
    let (number, unit) = match nanoseconds {
        ns if ns < 1e3 => (ns, "ns"),
        ns if ns < 1e6 => (ns / 1e3, "us"),
        ns if ns < 1e9 => (ns / 1e6, "ms"),
        ns => (ns / 1e9, "s"),
    };
    format!("{number:.2} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures() {
        let samples: Vec<f64> = (0..=10).rev().map(f64::from).collect();
        let times = Times::of(&samples).unwrap();
        assert_eq!((times.low, times.median, times.high, times.samples), (1.0, 5.0, 9.0, 11));
        assert_eq!(times.rate(10), 2e9);
        assert_eq!(Times::of(&[7.0]).unwrap().high, 7.0);
        assert_eq!(Times::of(&[]), None);
        assert_eq!([12.0, 1.5e3, 2e6, 3.25e9].map(time), ["12.00 ns", "1.50 us", "2.00 ms", "3.25 s"]);
    }
}
