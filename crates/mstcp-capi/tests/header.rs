//! `include/mstcp.h` is what cbindgen makes of the source; `MSTCP_RENEW=1 cargo test -p mstcp-capi` renews it.

use std::path::Path;

#[test]
fn the_header_says_what_the_library_has() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(folder.join("cbindgen.toml")).unwrap();
    let made = cbindgen::Builder::new()
        .with_crate(folder)
        .with_config(config)
        .generate()
        .unwrap();
    let mut header = Vec::new();
    made.write(&mut header);
    let path = folder.join("include/mstcp.h");
    if std::env::var_os("MSTCP_RENEW").is_some() {
        std::fs::write(&path, &header).unwrap();
    }
    let there = std::fs::read(&path).unwrap_or_default();
    assert!(
        there == header,
        "renew it: MSTCP_RENEW=1 cargo test -p mstcp-capi"
    );
}
