#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mstcp_core_fuzz::handshake(data));
