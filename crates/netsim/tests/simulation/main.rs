//! Whole simulations: against formulas, ns-3, the kernel's arithmetic, and themselves.

mod butterfly;
mod determinism;
mod dynamics;
mod fairness;
mod kernel_arithmetic;
mod mptcp;
mod mstcp;
mod oracles;
mod run;
mod table1;
mod wifi;
mod workloads;
