//! `sim://usl?…` and `sim://table?file=…`: a simulated server from its parameters.

use std::collections::BTreeMap;
use std::path::Path;
use std::str::FromStr;

use url::form_urlencoded;

use super::server::{Curve, Server};
use crate::failure::{Failure, Result};

/// The parameters of every simulated server; a law has its own besides.
const COMMON: [&str; 27] = [
    "cv",
    "seed",
    "streams",
    "streams_refuse",
    "nodes",
    "io_cost",
    "errors_above",
    "error_rate",
    "error_class",
    "batch_fixed",
    "batch_per_row",
    "batch_fail_bytes",
    "row_bytes",
    "drift",
    "drift_at",
    "freeze_at",
    "freeze_for",
    "warmup",
    "collapse_above",
    "client_cpu",
    "bimodal",
    "dip_at",
    "rate_limit",
    "zero_ops",
    "lambda",
    "sigma",
    "kappa",
];

/// Parameters by name, taken one by one.
struct Parameters {
    given: BTreeMap<String, String>,
}

impl Server {
    /// Reads a URI. Its `seed` is where the noise starts, unless it has none: then it is the run's.
    pub(crate) fn parse(uri: &str, seed: u64) -> Result<Self> {
        let rest = uri.strip_prefix("sim:").unwrap_or(uri).trim_start_matches('/');
        let (law, parameters) = rest.split_once('?').unwrap_or((rest, ""));
        let given = form_urlencoded::parse(parameters.as_bytes()).into_owned().collect();
        let mut parameters = Parameters { given };
        let curve = match law {
            "usl" => Curve::Usl {
                lambda: parameters.real("lambda", 1000.0, 1e-9..1e12)?,
                sigma: parameters.real("sigma", 0.05, 0.0..1.0)?,
                kappa: parameters.real("kappa", 0.0005, 0.0..1.0)?,
            },
            "table" => Curve::Table(table(&parameters.text("file")?)?),
            _ => {
                return Err(Failure::input(format!(
                    "--target {uri}: there is no law {law:?}; use sim://usl?lambda=1000&sigma=0.05&kappa=0.0005 or \
                     sim://table?file=points.csv"
                )));
            }
        };
        let server = parameters.server(curve, seed)?;
        parameters.nothing_left()?;
        Ok(server)
    }
}

impl Parameters {
    fn server(&mut self, curve: Curve, seed: u64) -> Result<Server> {
        let mut server = Server::new(curve);
        server.cv = self.real("cv", 0.02, 0.0..1.0)?;
        server.seed = self.number("seed")?.unwrap_or(seed);
        server.streams = self.some("streams", 1.0..1e9)?;
        server.streams_refuse = self.number::<bool>("streams_refuse")?.unwrap_or_default();
        server.nodes = self.real("nodes", 1.0, 1.0..1e6)?;
        server.io_cost = self.some("io_cost", 1e-3..1e9)?;
        server.errors_above = self.some("errors_above", 0.0..1e9)?;
        server.error_rate = self.real("error_rate", server.error_rate, 1e-9..1.0)?;
        server.error_class = self.given.remove("error_class").unwrap_or(server.error_class);
        let (fixed, per_row) = (self.some("batch_fixed", 0.0..1e9)?, self.some("batch_per_row", 1e-9..1e9)?);
        server.batch_fail_bytes = self.some("batch_fail_bytes", 1.0..1e12)?;
        let batches = fixed.is_some() || per_row.is_some() || server.batch_fail_bytes.is_some();
        server.batch = batches.then(|| (fixed.unwrap_or(1.0), per_row.unwrap_or(0.1)));
        server.row_bytes = self.real("row_bytes", server.row_bytes, 1.0..1e9)?;
        let (at, lost) = (self.real("drift_at", 60.0, 0.0..1e9)?, self.some("drift", -10.0..1.0)?);
        server.drift = lost.map(|lost| (lost, at));
        let (lasts, at) = (self.real("freeze_for", 5.0, 0.0..1e9)?, self.some("freeze_at", 0.0..1e9)?);
        server.freeze = at.map(|at| (at, lasts));
        server.warmup = self.real("warmup", 0.0, 0.0..1e9)?;
        server.collapse_above = self.some("collapse_above", 0.0..1e9)?;
        server.client_cpu = self.some("client_cpu", 1e-3..1e9)?;
        server.bimodal = self.real("bimodal", 0.0, 0.0..1.0)?;
        server.dip_at = self.some("dip_at", 1.0..1e9)?;
        server.rate_limit = self.some("rate_limit", 1e-9..1e12)?;
        server.zero_ops = self.number::<bool>("zero_ops")?.unwrap_or_default();
        Ok(server)
    }

    fn number<T: FromStr>(&mut self, name: &str) -> Result<Option<T>> {
        let Some(text) = self.given.remove(name) else { return Ok(None) };
        let number =
            text.trim().parse().map_err(|_| Failure::input(format!("--target: {name}={text} is not valid")))?;
        Ok(Some(number))
    }

    fn some(&mut self, name: &str, range: std::ops::Range<f64>) -> Result<Option<f64>> {
        match self.number::<f64>(name)? {
            Some(value) if value >= range.start && value <= range.end => Ok(Some(value)),
            Some(value) => {
                Err(Failure::input(format!("--target: {name}={value} is not within {} to {}", range.start, range.end)))
            }
            None => Ok(None),
        }
    }

    fn real(&mut self, name: &str, default: f64, range: std::ops::Range<f64>) -> Result<f64> {
        Ok(self.some(name, range)?.unwrap_or(default))
    }

    fn text(&mut self, name: &str) -> Result<String> {
        self.given.remove(name).ok_or_else(|| {
            Failure::input(format!("--target: sim://table needs {name}=, as in sim://table?file=points.csv"))
        })
    }

    fn nothing_left(self) -> Result<()> {
        let Some(name) = self.given.into_keys().next() else { return Ok(()) };
        let likeness = |known: &&&str| strsim::jaro_winkler(known, &name);
        let nearest = COMMON.iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
        let hint = nearest.filter(|nearest| likeness(nearest) > 0.7).map(|known| format!("; did you mean {known}?"));
        Err(Failure::input(format!("--target: sim:// has no parameter {name:?}{}", hint.unwrap_or_default())))
    }
}

/// Reads a table: columns `n` and `x`, or `threads` and `rows_per_s` as `points.csv` has them, in any order; where a number of
/// threads has several lines, the highest throughput counts.
fn table(file: &str) -> Result<Vec<(f64, f64)>> {
    let fail = |why: String| Failure::input(format!("--target: file={file}: {why}"));
    let text = std::fs::read_to_string(Path::new(file)).map_err(|error| fail(error.to_string()))?;
    let mut lines = text.lines().map(|line| line.split(',').map(str::trim).collect::<Vec<_>>());
    let head = lines.next().unwrap_or_default();
    let column = |names: [&str; 2]| {
        let place = head.iter().position(|name| names.contains(&name.to_ascii_lowercase().as_str()));
        place.ok_or_else(|| fail(format!("no column {} or {} in the first line", names[0], names[1])))
    };
    let (n, x) = (column(["n", "threads"])?, column(["x", "rows_per_s"])?);
    let mut points = BTreeMap::new();
    for (number, line) in lines.enumerate().filter(|(_, line)| line.iter().any(|cell| !cell.is_empty())) {
        let cell = |place: usize| line.get(place).and_then(|cell| cell.parse::<f64>().ok()).filter(|it| it.is_finite());
        let (Some(n), Some(x)) = (cell(n).filter(|n| *n >= 1.0), cell(x).filter(|x| *x >= 0.0)) else {
            return Err(fail(format!("line {}: n and x must be numbers, n at least 1", number + 2)));
        };
        let best: &mut f64 = points.entry(n.to_bits()).or_default();
        *best = best.max(x);
    }
    if points.is_empty() {
        return Err(fail("no points".into()));
    }
    // The bits of positive numbers have the order of the numbers.
    Ok(points.into_iter().map(|(n, x)| (f64::from_bits(n), x)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(uri: &str) -> String {
        Server::parse(uri, 1).unwrap_err().to_string()
    }

    #[test]
    fn every_parameter_is_read() {
        let all = "sim://usl?lambda=2&sigma=0.1&kappa=0.01&cv=0.05&seed=9&streams=8&streams_refuse=true&nodes=3&io_cost=20&errors_above=7\
            &error_rate=0.2&error_class=timeout_attempt&batch_fixed=2&batch_per_row=0.5&batch_fail_bytes=5000&row_bytes=50\
            &drift=0.1&drift_at=30&freeze_at=10&freeze_for=2&warmup=5&collapse_above=99&client_cpu=3&bimodal=0.1&dip_at=20\
            &rate_limit=1000&zero_ops=false";
        let server = Server::parse(all, 1).unwrap();
        assert_eq!(server.curve, Curve::Usl { lambda: 2.0, sigma: 0.1, kappa: 0.01 });
        assert_eq!((server.seed, server.streams, server.batch), (9, Some(8.0), Some((2.0, 0.5))));
        assert_eq!((server.drift, server.freeze), (Some((0.1, 30.0)), Some((10.0, 2.0))));
        for name in COMMON {
            assert!(all.contains(&format!("{name}=")), "{name}");
        }
        assert_eq!(Server::parse("sim://usl", 5).unwrap().seed, 5);
    }

    #[test]
    fn what_can_not_be_is_refused_by_name() {
        assert!(refused("sim://usl?lamda=1").contains("did you mean lambda?"));
        assert!(refused("sim://usl?sigma=2").contains("sigma=2 is not within 0 to 1"));
        assert!(refused("sim://usl?cv=nan").contains("cv=NaN"));
        assert!(refused("sim://usl?seed=x").contains("seed=x"));
        assert!(refused("sim://gamma").contains("sim://usl?"));
        assert!(refused("sim://table").contains("file="));
        assert!(refused("sim://table?file=/none.csv").contains("/none.csv"));
    }

    #[test]
    fn a_table_is_interpolated_and_reads_the_points_of_a_run() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("points.csv");
        let uri = format!("sim://table?file={}", file.display());
        std::fs::write(&file, "x,n\n10,1\n40,8\n30,16\n\n").unwrap();
        let curve = Server::parse(&uri, 1).unwrap().curve;
        let read: Vec<f64> = [1.0, 4.5, 8.0, 12.0, 99.0].map(|n| curve.at(n)).to_vec();
        assert_eq!(read, [10.0, 25.0, 40.0, 35.0, 30.0]);
        std::fs::write(&file, "threads,io_threads,rows_per_s\n1,1,5\n1,2,9\n2,1,7\n").unwrap();
        assert_eq!(Server::parse(&uri, 1).unwrap().curve, Curve::Table(vec![(1.0, 9.0), (2.0, 7.0)]));
        std::fs::write(&file, "n,x\n1,a\n").unwrap();
        assert!(refused(&uri).contains("line 2"));
        std::fs::write(&file, "a,b\n1,2\n").unwrap();
        assert!(refused(&uri).contains("no column n or threads"));
    }
}
