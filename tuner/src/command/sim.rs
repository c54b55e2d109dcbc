//! `tuner sim`: the truth about simulated servers.

use crate::cli::GridSettings;
use crate::console::Console;
use crate::failure::{Exit, Failure, Result};
use crate::judge::{self, Pairs, cases};
use crate::report::rate;
use crate::search::DELTA;
use crate::space::{Point, Space};
use crate::target::TargetUri;
use crate::target::sim::{CORES, Grid, Server};

/// Points of a grid at the most.
const MOST: u64 = 1_000_000;

/// Prints the grid of a simulated server.
pub(crate) fn grid(settings: &GridSettings) -> Result<Exit> {
    let uri = TargetUri::parse(&settings.target)?;
    let uri = uri.simulated().ok_or_else(|| {
        Failure::input(format!("--target {uri} is not simulated; only of sim:// the truth is known without measuring"))
    })?;
    let server = Server::parse(uri, 1)?;
    let GridSettings { threads, io_threads, pool, batch, .. } = *settings;
    let space = server.narrow(Space { threads, io_threads, pool, batch, cores: CORES });
    let points = Grid::len(&space);
    if points > MOST {
        return Err(Failure::input(format!("these ranges have {points} points; narrow them to {MOST} at the most")));
    }
    let grid = Grid::of(&server, &space);
    Console::result("threads,io_threads,pool,batch,rows_per_s,error_class");
    for (point, rows_per_s) in &grid.points {
        let Point { threads, io_threads, pool, batch } = point;
        let rate = rows_per_s.map(|rate| format!("{rate:.3}")).unwrap_or_default();
        let class = server.failing(*point).map_or("", |it| it.1);
        Console::result(&format!("{threads},{io_threads},{pool},{batch},{rate},{class}"));
    }
    for (name, found) in [("peak", grid.peak()), ("knee", grid.knee(DELTA))] {
        match found {
            Some((point, found)) => eprintln!("{name}      {point}: {} rows/s", rate(found)),
            None => eprintln!("{name}      none: no point works without an error"),
        }
    }
    Ok(Exit::Done)
}

/// Noise of a window.
const NOISE: [f64; 3] = [0.01, 0.02, 0.05];

/// Judges the search, and says which bars it misses.
pub(crate) fn judge(seeds: u64, only: &str) -> Result<Exit> {
    let cases: Vec<_> = cases()?.into_iter().filter(|case| case.name.contains(only)).collect();
    if cases.is_empty() {
        return Err(Failure::input(format!("no server's name contains {only:?}")));
    }
    Console::result(&judge::header());
    let (mut rows, mut pairs) = (Vec::new(), Vec::new());
    for (case, cv) in cases.iter().flat_map(|case| NOISE.map(|cv| (case, cv))) {
        let row = judge::judge(case, cv, seeds);
        let row = row.ok_or_else(|| Failure::input(format!("{}: a search did not end", case.name)))?;
        Console::result(&row.text());
        rows.push(row);
    }
    for cv in NOISE {
        let judged = Pairs::judge(cv, seeds);
        Console::result(&judged.text());
        pairs.push(judged);
    }
    Console::result(&format!("\n{}", judge::bars_header()));
    for line in judge::bars(&rows, &pairs) {
        Console::result(&line);
    }
    let missed = rows.iter().map(|row| row.missed().len()).sum::<usize>();
    let missed = missed + pairs.iter().filter(|pairs| pairs.misses()).count();
    eprintln!("missed    {missed} bars");
    Ok(if missed == 0 { Exit::Done } else { Exit::Failed })
}
