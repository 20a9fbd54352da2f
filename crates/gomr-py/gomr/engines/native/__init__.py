"""The default engine: exact column generation in Rust (crates/gomr, gomr._native)."""
