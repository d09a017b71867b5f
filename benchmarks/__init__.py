"""Benchmarks: ratios within one run, to the bare operations and to peers."""
