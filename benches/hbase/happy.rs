//! happybase in a process of its own.

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use peristyle_benches::Block;

pub(crate) struct Happy {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Happy {
    pub(crate) fn start(address: SocketAddr, table: &str) -> Result<Self, Box<dyn Error>> {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/hbase/happy.py");
        let mut process = Command::new(peristyle_servers::happybase()?)
            .args([script, &address.ip().to_string(), &address.port().to_string(), table])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let input = process.stdin.take().ok_or("no input")?;
        let output = BufReader::new(process.stdout.take().ok_or("no output")?);
        Ok(Self { process, input, output })
    }

    /// `put` or `get`: so many threads with so many batches of so many rows each.
    pub(crate) fn run(&mut self, what: &str, threads: u64, each: u64, rows: u64) -> Result<Block, Box<dyn Error>> {
        writeln!(self.input, "{what} {threads} {each} {rows}")?;
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        let mut words = line.split_whitespace();
        let mut word = || words.next().ok_or("happybase ended");
        let operations = word()?.parse()?;
        let (wall, cpu) = (word()?.parse()?, word()?.parse()?);
        Ok(Block { operations, wall: Duration::from_secs_f64(wall), cpu: Duration::from_secs_f64(cpu) })
    }
}

impl Drop for Happy {
    fn drop(&mut self) {
        // Both fail only if it has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
