//! Times of a cron line, as VCP's scheduler reads it: five fields, or six with seconds in front.

use jiff::civil::Date;
use jiff::{ToSpan, Zoned};

/// Days that are searched: a line such as `0 0 29 2 *` fits once in four years, at times in eight.
const DAYS_SEARCHED_MAX: u32 = 366 * 8 + 3;
const MONTHS: [&str; 12] =
    ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

/// A schedule in cron syntax.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CronSchedule {
    /// The values that each field allows, in order.
    seconds: Vec<i8>,
    minutes: Vec<i8>,
    hours: Vec<i8>,
    days: Vec<i8>,
    months: Vec<i8>,
    /// Weekdays; 0 is Sunday.
    weekdays: Vec<i8>,
    day_rule: DayRule,
}

/// Days that fit if a line names both days of the month and of the week.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DayRule {
    /// Both must fit: one of them is `*`.
    Both,
    /// One is enough: cron's old rule where both are named.
    Either,
}

impl CronSchedule {
    /// # Errors
    /// The field that cannot be read.
    pub(super) fn parse(line: &str) -> Result<Self, String> {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (seconds, rest) = match fields.len() {
            5 => ("0", fields.as_slice()),
            6 => (fields[0], &fields[1..]),
            count => return Err(format!("`{line}` has {count} fields and not 5 or 6")),
        };
        let mut weekdays = parse_field(rest[4], 0, 7, &WEEKDAYS, 0)?;
        weekdays.iter_mut().for_each(|day| *day %= 7);
        weekdays.sort_unstable();
        weekdays.dedup();
        let is_any = |field: &str| matches!(field, "*" | "?");
        let day_rule = if is_any(rest[2]) || is_any(rest[4]) { DayRule::Both } else { DayRule::Either };
        Ok(Self {
            seconds: parse_field(seconds, 0, 59, &[], 0)?,
            minutes: parse_field(rest[0], 0, 59, &[], 0)?,
            hours: parse_field(rest[1], 0, 23, &[], 0)?,
            days: parse_field(rest[2], 1, 31, &[], 0)?,
            months: parse_field(rest[3], 1, 12, &MONTHS, 1)?,
            weekdays,
            day_rule,
        })
    }

    /// Next time after this one, in its time zone. `None` = none within eight years.
    pub(super) fn next_after(&self, after: &Zoned) -> Option<Zoned> {
        let mut date = after.date();
        for _ in 0..DAYS_SEARCHED_MAX {
            if self.is_day(date) {
                let times = self.hours.iter().flat_map(|hour| {
                    let minutes = self.minutes.iter();
                    minutes
                        .flat_map(move |minute| self.seconds.iter().map(move |second| (hour, minute, second)))
                });
                let zoned = times.filter_map(|(hour, minute, second)| {
                    date.at(*hour, *minute, *second, 0).to_zoned(after.time_zone().clone()).ok()
                });
                if let Some(next) = zoned.into_iter().find(|at| at > after) {
                    return Some(next);
                }
            }
            date = date.checked_add(1.day()).ok()?;
        }
        None
    }

    fn is_day(&self, date: Date) -> bool {
        let day = self.days.contains(&date.day());
        let weekday = self.weekdays.contains(&date.weekday().to_sunday_zero_offset());
        let fits = match self.day_rule {
            DayRule::Both => day && weekday,
            DayRule::Either => day || weekday,
        };
        fits && self.months.contains(&date.month())
    }
}

/// `*`, `5`, `1-5`, `*/10`, `1-30/2`, `MON`, and lists of these.
fn parse_field(field: &str, min: i8, max: i8, names: &[&str], first: i8) -> Result<Vec<i8>, String> {
    let fault = || format!("`{field}` is not a field of a cron line with values from {min} to {max}");
    let value = |text: &str| -> Option<i8> {
        let named = names.iter().position(|name| text.eq_ignore_ascii_case(name));
        let value = match named {
            Some(at) => i8::try_from(at).ok()? + first,
            None => text.parse().ok()?,
        };
        (min..=max).contains(&value).then_some(value)
    };
    let mut values = Vec::new();
    for part in field.split(',') {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => {
                (range, step.parse::<usize>().ok().filter(|step| *step > 0).ok_or_else(fault)?)
            }
            None => (part, 1),
        };
        let (low, high) = match (range, range.split_once('-')) {
            ("*" | "?", _) => (min, max),
            (_, Some((low, high))) => (value(low).ok_or_else(fault)?, value(high).ok_or_else(fault)?),
            // `5/10`: from 5 on.
            (_, None) => {
                let low = value(range).ok_or_else(fault)?;
                (low, if part.contains('/') { max } else { low })
            }
        };
        if low > high {
            return Err(fault());
        }
        values.extend((low..=high).step_by(step));
    }
    values.sort_unstable();
    values.dedup();
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(line: &str, after: &str) -> String {
        let after: Zoned = after.parse().unwrap();
        let next = CronSchedule::parse(line).unwrap().next_after(&after);
        next.map_or("never".to_owned(), |at| at.strftime("%Y-%m-%d %H:%M:%S %a").to_string())
    }

    #[test]
    fn cron_line_yields_its_next_run_time() {
        let now = "2026-11-23T22:40:30[UTC]";
        for (line, expected) in [
            ("0 * * * *", "2026-11-23 23:00:00 Mon"),
            ("*/5 * * * *", "2026-11-23 22:45:00 Mon"),
            ("0 */6 * * *", "2026-11-24 00:00:00 Tue"),
            ("* * * * * *", "2026-11-23 22:40:31 Mon"),
            ("*/20 * * * * *", "2026-11-23 22:40:40 Mon"),
            ("30 9 * * 1-5", "2026-11-24 09:30:00 Tue"),
            ("0 8 * * SUN", "2026-11-29 08:00:00 Sun"),
            ("0 8 * * 7", "2026-11-29 08:00:00 Sun"),
            ("0 0 1 jan *", "2027-01-01 00:00:00 Fri"),
            ("0 0 29 2 *", "2028-02-29 00:00:00 Tue"),
            ("15,45 22/2 * * *", "2026-11-23 22:45:00 Mon"),
            // Both kinds of day: one is enough.
            ("0 0 25 * FRI", "2026-11-25 00:00:00 Wed"),
            ("0 0 30 2 *", "never"),
        ] {
            assert_eq!(next(line, now), expected, "{line}");
        }
        // An hour that the clock skips is no time of that day.
        assert_eq!(next("30 2 * * *", "2026-03-29T00:00:00[Europe/Berlin]"), "2026-03-29 03:30:00 Sun");
    }

    #[test]
    fn invalid_cron_line_names_the_field() {
        for (line, expected) in [
            ("* * * *", "`* * * *` has 4 fields and not 5 or 6"),
            ("61 * * * *", "`61` is not a field of a cron line with values from 0 to 59"),
            ("*/0 * * * *", "`*/0` is not a field of a cron line with values from 0 to 59"),
            ("0 9-8 * * *", "`9-8` is not a field of a cron line with values from 0 to 23"),
            ("0 0 * * XYZ", "`XYZ` is not a field of a cron line with values from 0 to 7"),
        ] {
            assert_eq!(CronSchedule::parse(line), Err(expected.to_owned()), "{line}");
        }
    }
}
