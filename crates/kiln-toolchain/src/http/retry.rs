//! How often a request is made again, and when.

use std::hash::{BuildHasher, Hasher};
use std::time::{Duration, SystemTime};

use super::HttpError;

/// The longest wait that a server's `Retry-After` may ask for.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(30);

/// How often a request is made again when its failure may pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Tries in all; at least 1.
    pub attempts: u32,
    /// Wait before the second try; doubled for each one after it, and lengthened by up to a half at random.
    pub first_delay: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { attempts: 4, first_delay: Duration::from_millis(500) }
    }
}

/// The slowest answer that is waited for: a connection that gives less is as good as silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slowest {
    /// Bytes that come within [`Slowest::window`] at least.
    pub bytes: u64,
    /// How long is waited for them.
    pub window: Duration,
}

impl Default for Slowest {
    fn default() -> Self {
        Self { bytes: 4 << 10, window: Duration::from_secs(60) }
    }
}

impl RetryPolicy {
    /// How long to wait after the try `attempt`, from 1, has failed; none if that was the last one or `failure` stays.
    pub(super) fn wait(&self, attempt: u32, failure: &HttpError) -> Option<Duration> {
        if attempt >= self.attempts || !failure.fault.is_transient() {
            return None;
        }
        let doubled = self.first_delay.saturating_mul(1 << attempt.saturating_sub(1).min(6));
        Some(failure.retry_after.unwrap_or_else(|| doubled + doubled.mul_f64(random() / 2.0)).min(MAX_RETRY_AFTER))
    }
}

/// A number from 0 to 1 that differs between processes, so that they do not all come back at once.
fn random() -> f64 {
    let random = std::collections::hash_map::RandomState::new().build_hasher().finish();
    (random >> 11) as f64 / (1_u64 << 53) as f64
}

/// The wait that a `Retry-After` header asks for: a number of seconds, or a date (RFC 9110, 5.6.7; the one form that is
/// still written). A date that has passed is no wait.
pub(super) fn retry_after(text: &str, now: SystemTime) -> Option<Duration> {
    let text = text.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let then = SystemTime::UNIX_EPOCH + Duration::from_secs(http_date(text)?);
    Some(then.duration_since(now).unwrap_or_default())
}

/// Seconds since 1970 of a date such as `Sun, 06 Nov 1994 08:49:37 GMT`.
fn http_date(text: &str) -> Option<u64> {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let rest = text.split_once(", ")?.1.strip_suffix(" GMT")?;
    let words: Vec<&str> = rest.split(' ').collect();
    let [day, month, year, time] = words.as_slice() else { return None };
    let numbers: Vec<u64> = time.split(':').map(|number| number.parse().ok()).collect::<Option<_>>()?;
    let [hour, minute, second] = numbers.as_slice() else { return None };
    let (day, year): (u64, u64) = (day.parse().ok()?, year.parse().ok()?);
    let month = MONTHS.iter().position(|name| name == month)? as u64 + 1;
    if !(1970..=9999).contains(&year) || !(1..=31).contains(&day) || *hour > 23 || *minute > 59 || *second > 60 {
        return None;
    }
    // Years that begin in March end with the leap day.
    let (from_march, year) = if month > 2 { (month - 3, year) } else { (month + 9, year - 1) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (from_march * 153 + 2) / 5 + day - 1;
    // The same count for 1970-01-01.
    const EPOCH: u64 = 719_468;
    Some((days.checked_sub(EPOCH)? * 24 + hour) * 3600 + minute * 60 + second)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::HttpFault;

    #[test]
    fn seconds_and_dates() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777 - 9);
        let seconds = |text: &str| retry_after(text, now).map(|wait| wait.as_secs());
        assert_eq!(seconds(" 120 "), Some(120));
        assert_eq!(seconds("Sun, 06 Nov 1994 08:49:37 GMT"), Some(9));
        assert_eq!(seconds("Sat, 05 Nov 1994 08:49:37 GMT"), Some(0));
        for text in ["", "-1", "1.5", "soon", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Foo 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49 GMT"] {
            assert_eq!(seconds(text), None, "{text}");
        }
        assert_eq!(http_date("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        assert_eq!(http_date("Thu, 29 Feb 2024 12:00:00 GMT"), Some(1_709_208_000));
    }

    #[test]
    fn waits_grow_and_end() {
        let policy = RetryPolicy { attempts: 4, first_delay: Duration::from_millis(100) };
        let url = url::Url::parse("https://example.org/").unwrap();
        let wait = |attempt, fault: HttpFault| policy.wait(attempt, &fault.at(&url));
        for (attempt, least) in [(1, 100), (2, 200), (3, 400)] {
            let wait = wait(attempt, HttpFault::Stalled).unwrap().as_millis();
            assert!((least..=least * 3 / 2).contains(&wait), "{wait}");
        }
        assert_eq!(wait(4, HttpFault::Stalled), None);
        assert_eq!(wait(1, HttpFault::Status(404)), None);
        assert!([408, 429, 500, 502, 503, 504].into_iter().all(|status| wait(1, HttpFault::Status(status)).is_some()));
        let asked = HttpError { retry_after: Some(Duration::from_secs(3600)), ..HttpFault::Status(429).at(&url) };
        assert_eq!(policy.wait(1, &asked), Some(MAX_RETRY_AFTER));
    }
}
