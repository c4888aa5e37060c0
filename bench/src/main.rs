//! The benchmarks' command line.
fn main() {}
