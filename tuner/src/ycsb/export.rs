//! Results as YCSB writes them.

use std::fmt::Write as _;

use serde_json::json;

/// The value of a line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Number {
    /// A count.
    Whole(u64),
    /// A mean or rate.
    Real(f64),
    /// YCSB's -1 where there is no value.
    None,
}

/// One line of a result.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Line {
    metric: String,
    measurement: String,
    number: Number,
}

impl Line {
    pub(crate) fn new(metric: &str, measurement: &str, number: Number) -> Self {
        Self { metric: metric.to_owned(), measurement: measurement.to_owned(), number }
    }

    /// The line as text.
    pub(super) fn text(&self) -> String {
        let number = match self.number {
            Number::Whole(number) => number.to_string(),
            Number::Real(number) => java_double(number),
            Number::None => "-1".into(),
        };
        format!("[{}], {}, {number}", self.metric, self.measurement)
    }
}

/// A number as Java prints a double.
fn java_double(number: f64) -> String {
    let plain = number == 0.0 || (1e-3..1e7).contains(&number.abs());
    if plain || !number.is_finite() {
        return format!("{number:?}");
    }
    let text = format!("{number:E}");
    match text.split_once('E') {
        Some((digits, exponent)) if !digits.contains('.') => format!("{digits}.0E{exponent}"),
        _ => text,
    }
}

/// The form of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exporter {
    /// A line for each.
    Text,
    /// One JSON array of objects.
    Json,
}

impl Exporter {
    /// By the class name of YCSB's exporter, or its short form.
    pub(super) fn find(name: &str) -> Option<Self> {
        match name.trim().rsplit('.').next().unwrap_or_default() {
            "TextMeasurementsExporter" | "text" => Some(Self::Text),
            "JSONMeasurementsExporter" | "JSONArrayMeasurementsExporter" | "json" => Some(Self::Json),
            _ => None,
        }
    }

    /// The whole result.
    pub(crate) fn write(self, lines: &[Line]) -> String {
        match self {
            Self::Text => lines.iter().fold(String::new(), |mut text, line| {
                // Writing to a string doesn't fail.
                let _ = writeln!(text, "{}", line.text());
                text
            }),
            Self::Json => {
                let objects = lines.iter().map(|line| {
                    let value = match line.number {
                        Number::Whole(number) => json!(number),
                        // What is no number becomes null.
                        Number::Real(number) => json!(number),
                        Number::None => json!(-1),
                    };
                    json!({"metric": line.metric, "measurement": line.measurement, "value": value}).to_string()
                });
                format!("[ {} ]\n", objects.collect::<Vec<_>>().join(",\n  "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_read_as_in_java() {
        let numbers = [0.0, 200.0, 0.001, 1e7, 12_345_678.9, 0.000_25, 1e-10];
        assert_eq!(numbers.map(java_double), ["0.0", "200.0", "0.001", "1.0E7", "1.23456789E7", "2.5E-4", "1.0E-10"]);
    }

    #[test]
    fn json_is_valid_whatever_the_numbers() {
        let lines = [Line::new("A\"", "x", Number::Real(f64::NAN)), Line::new("B", "y", Number::Whole(3))];
        let value: serde_json::Value = serde_json::from_str(&Exporter::Json.write(&lines)).unwrap();
        assert_eq!(value[0]["metric"], "A\"");
        assert_eq!((&value[0]["value"], &value[1]["value"]), (&serde_json::Value::Null, &json!(3)));
        assert!(serde_json::from_str::<serde_json::Value>(&Exporter::Json.write(&[])).is_ok());
    }

    #[test]
    fn exporters_are_known_by_their_class() {
        let name = "site.ycsb.measurements.exporter.JSONArrayMeasurementsExporter";
        assert_eq!((Exporter::find(name), Exporter::find("x.Other")), (Some(Exporter::Json), None));
    }
}
