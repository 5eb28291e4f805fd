//! Days and hours in words, and the output of a clock tool.

use super::language::DemoLanguage;

/// A day in the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CalendarDay {
    pub year: i64,
    pub month: i64,
    pub day: i64,
}

const WEEKDAYS_ENGLISH: [&str; 7] =
    ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const WEEKDAYS_CHINESE: [&str; 7] = ["星期一", "星期二", "星期三", "星期四", "星期五", "星期六", "星期日"];
const MONTHS: &str = "January February March April May June July August September October November December";

impl CalendarDay {
    /// Days since 1970-01-01 (Hinnant's civil calendar).
    fn number(self) -> i64 {
        let y = if self.month <= 2 { self.year - 1 } else { self.year };
        let era = y.div_euclid(400);
        let of_era = y - era * 400;
        let of_year = (153 * (self.month + if self.month > 2 { -3 } else { 9 }) + 2) / 5 + self.day - 1;
        era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
    }

    fn of_number(number: i64) -> Self {
        let z = number + 719_468;
        let era = z.div_euclid(146_097);
        let of_era = z - era * 146_097;
        let years = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * years + years / 4 - years / 100);
        let m = (5 * of_year + 2) / 153;
        let month = if m < 10 { m + 3 } else { m - 9 };
        Self { year: years + era * 400 + i64::from(month <= 2), month, day: of_year - (153 * m + 2) / 5 + 1 }
    }

    pub fn plus(self, days: i64) -> Self {
        Self::of_number(self.number() + days)
    }

    /// Day of the week; 0 = Monday.
    pub fn weekday(self) -> usize {
        (self.number() + 3).rem_euclid(7) as usize
    }

    pub fn iso(self) -> String {
        format!("{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }

    /// `Saturday, 21 November 2026`, `2026年11月21日，星期六`.
    pub fn words(self, language: DemoLanguage) -> String {
        match language {
            DemoLanguage::English => {
                let month = MONTHS.split(' ').nth((self.month - 1).clamp(0, 11) as usize).unwrap_or_default();
                format!("{}, {} {month} {}", WEEKDAYS_ENGLISH[self.weekday()], self.day, self.year)
            }
            DemoLanguage::Chinese => {
                format!("{}年{}月{}日，{}", self.year, self.month, self.day, WEEKDAYS_CHINESE[self.weekday()])
            }
        }
    }
}

/// The first `2026-11-21T12:34` (or with a space) in a text.
pub(crate) fn find_timestamp(text: &str) -> Option<(CalendarDay, String)> {
    let bytes = text.as_bytes();
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<i64>().ok();
    (0..bytes.len().saturating_sub(15)).find_map(|at| {
        let marks = [(4, b'-'), (7, b'-'), (13, b':')];
        let shaped = marks.iter().all(|(offset, mark)| bytes[at + offset] == *mark);
        if !shaped || !matches!(bytes[at + 10], b'T' | b' ') {
            return None;
        }
        let day = CalendarDay {
            year: number(at, at + 4)?,
            month: number(at + 5, at + 7)?,
            day: number(at + 8, at + 10)?,
        };
        let (hour, minute) = (number(at + 11, at + 13)?, number(at + 14, at + 16)?);
        let sane = (1..=12).contains(&day.month) && (1..=31).contains(&day.day) && hour < 24 && minute < 60;
        sane.then(|| (day, format!("{hour:02}:{minute:02}")))
    })
}

/// The day that a request means, counted from today.
pub(crate) fn requested_day(text: &str, today: CalendarDay) -> CalendarDay {
    let lower = text.to_lowercase();
    let has = |word: &str| lower.contains(word);
    if has("the day after tomorrow") || has("后天") {
        return today.plus(2);
    }
    if has("tomorrow") || has("明天") || has("明早") || has("明晚") {
        return today.plus(1);
    }
    if has("today") || has("tonight") || has("今天") || has("今晚") {
        return today;
    }
    let named = (0..7).find(|i| {
        let chinese = WEEKDAYS_CHINESE[*i];
        has(&WEEKDAYS_ENGLISH[*i].to_lowercase()) || has(chinese) || has(&chinese.replace("星期", "周"))
    });
    match named {
        Some(weekday) => {
            let ahead = (weekday as i64 - today.weekday() as i64).rem_euclid(7);
            today.plus(if ahead == 0 { 7 } else { ahead })
        }
        None => today.plus(1),
    }
}

/// The hour in a request as `15:00`; absent = `10:00`.
pub(crate) fn requested_hour(text: &str) -> String {
    find_hour(text).map_or_else(|| "10:00".into(), |(hour, minute)| format!("{hour:02}:{minute:02}"))
}

fn find_hour(text: &str) -> Option<(u32, u32)> {
    let lower = text.to_lowercase();
    if lower.contains("noon") || lower.contains("中午") && !lower.contains('点') {
        return Some((12, 0));
    }
    let later = ["pm", "p.m", "afternoon", "evening", "下午", "晚上", "今晚", "明晚", "tonight"];
    let shift =
        |hour: u32| if hour < 12 && later.iter().any(|word| lower.contains(word)) { hour + 12 } else { hour };
    let chars: Vec<char> = lower.chars().collect();
    let mut i = 0;
    while i < chars.len() {
        let digits: String = chars[i..].iter().take_while(|c| c.is_ascii_digit()).collect();
        if digits.is_empty() {
            i += 1;
            continue;
        }
        let rest: String = chars[i + digits.len()..].iter().collect();
        let trimmed = rest.trim_start();
        let hour = digits.parse::<u32>().ok().filter(|hour| *hour < 24);
        if let Some(hour) = hour {
            if let Some(after) = rest.strip_prefix(':').or_else(|| rest.strip_prefix('：')) {
                let minutes: String = after.chars().take_while(char::is_ascii_digit).collect();
                return Some((shift(hour), minutes.parse().ok().filter(|m| *m < 60).unwrap_or(0)));
            }
            if let Some(after) = trimmed.strip_prefix('点') {
                return Some((shift(hour), if after.starts_with('半') { 30 } else { 0 }));
            }
            let before: String = chars[..i].iter().collect();
            if trimmed.starts_with("pm")
                || trimmed.starts_with("am")
                || trimmed.starts_with("p.m")
                || trimmed.starts_with("o'clock")
                || before.trim_end().ends_with(" at")
            {
                return Some((shift(hour), 0));
            }
        }
        i += digits.len();
    }
    let numerals = ["零", "一", "二", "三", "四", "五", "六", "七", "八", "九", "十", "十一", "十二"];
    (1..=12u32).rev().find_map(|hour| {
        let spelled = if hour == 2 { vec!["两点", "二点"] } else { Vec::new() };
        let word = format!("{}点", numerals[hour as usize]);
        let at = spelled.iter().find_map(|word| lower.find(word)).or_else(|| lower.find(&word))?;
        let half = lower[at..].contains("点半");
        Some((shift(hour), if half { 30 } else { 0 }))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SATURDAY: CalendarDay = CalendarDay { year: 2026, month: 11, day: 21 };

    #[test]
    fn days_in_words_become_dates() {
        for (text, expected) in [
            ("tomorrow", "2026-11-22"),
            ("后天下午", "2026-11-23"),
            ("on Friday", "2026-11-27"),
            ("next saturday", "2026-11-28"),
            ("周三", "2026-11-25"),
            ("today", "2026-11-21"),
            ("sometime", "2026-11-22"),
        ] {
            assert_eq!(requested_day(text, SATURDAY).iso(), expected, "{text}");
        }
        assert_eq!(SATURDAY.words(DemoLanguage::English), "Saturday, 21 November 2026");
        assert_eq!(SATURDAY.plus(41).words(DemoLanguage::Chinese), "2027年1月1日，星期五");
    }

    #[test]
    fn hours_in_words_become_times() {
        for (text, expected) in [
            ("tomorrow at 3pm", "15:00"),
            ("at 15:30", "15:30"),
            ("dinner at 7 in the evening", "19:00"),
            ("明天下午3点", "15:00"),
            ("明天上午十点半", "10:30"),
            ("晚上八点", "20:00"),
            ("下午两点", "14:00"),
            ("at noon", "12:00"),
            ("tomorrow", "10:00"),
            ("room 4, 25:99", "10:00"),
        ] {
            assert_eq!(requested_hour(text), expected, "{text}");
        }
    }

    #[test]
    fn timestamp_is_found_in_any_text() {
        let (day, time) =
            find_timestamp(r#"{"now":"2026-11-21T09:05:07+09:00[Asia/Tokyo]"}"#).expect("a moment");
        assert_eq!((day, time.as_str()), (SATURDAY, "09:05"));
        assert_eq!(find_timestamp("2026-13-21T09:05"), None);
        assert_eq!(find_timestamp("很久以前"), None);
    }
}
