#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mstcp_proto_fuzz::records(data));
