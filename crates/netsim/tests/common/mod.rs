//! What the TCP tests share: a pipe between two endpoints, and scripts.
#![allow(dead_code)]

pub mod pipe;
pub mod script;
