//! The sources as `docs/gomr-algorithm.md` describes them.
#![allow(missing_docs)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Files in which a type may have methods of its own.
const MAX_FILES: usize = 3;

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("it can be read").path();
        match path.is_dir() {
            true => sources(&path, found),
            false => found.push(path),
        }
    }
}

/// The files below `src`, by name, with their text up to their tests.
fn files() -> BTreeMap<String, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    sources(&root, &mut found);
    let named = found.into_iter().map(|path| {
        let text = fs::read_to_string(&path).expect("it can be read");
        let name = path.strip_prefix(&root).expect("it is below");
        let code = text.split("#[cfg(test)]\nmod tests").next();
        (
            name.to_string_lossy().into_owned(),
            code.unwrap_or_default().to_owned(),
        )
    });
    named.collect()
}

/// The word after a keyword at the beginning of a line, whatever its visibility.
fn declared<'a>(line: &'a str, keywords: &[&str]) -> Option<&'a str> {
    let mut words = line.split_whitespace();
    let mut word = words.next()?;
    if word.starts_with("pub") {
        word = words.next()?;
    }
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let name = keywords.contains(&word).then(|| words.next())??;
    name.split(|c: char| !is_name(c)).next()
}

#[test]
fn the_page_names_every_file_and_no_other() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/gomr-algorithm.md");
    let page = fs::read_to_string(page).expect("the page is there");
    let quoted = page.split('`').skip(1).step_by(2);
    let named: BTreeSet<&str> = quoted.filter(|name| name.ends_with(".rs")).collect();
    let files = files();
    for name in &named {
        assert!(files.contains_key(*name), "{name} is named and not there");
    }
    // What only lists its folder, and the random numbers of the tests.
    let is_list = |name: &str| {
        let lists = ["lib.rs", "random.rs"];
        let is_index = name.ends_with("mod.rs") && !files[name].contains("fn ");
        lists.contains(&name) || is_index
    };
    let missing: Vec<&String> = files
        .keys()
        .filter(|name| !named.contains(name.as_str()) && !is_list(name))
        .collect();
    assert!(missing.is_empty(), "not on the page: {missing:?}");
}

#[test]
fn names_are_given_once_and_types_stay_in_few_files() {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut methods: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (file, text) in files() {
        for line in text.lines() {
            // Those inside of a function or a block are nobody else's.
            if line.starts_with(' ') {
                continue;
            }
            if let Some(name) = declared(line, &["struct", "enum", "trait", "type", "const"]) {
                places
                    .entry(name.to_owned())
                    .or_default()
                    .push(file.clone());
            }
            let own = line
                .strip_prefix("impl")
                .filter(|_| !line.contains(" for "));
            if let Some(own) = own {
                let own = own.trim_start_matches(|c| c != ' ').trim_start();
                let name: String = own.chars().take_while(|c| c.is_alphanumeric()).collect();
                methods.entry(name).or_default().insert(file.clone());
            }
        }
    }
    let twice: Vec<_> = places.iter().filter(|(_, files)| files.len() > 1).collect();
    assert!(twice.is_empty(), "{twice:?}");
    let spread: Vec<_> = methods
        .iter()
        .filter(|(_, files)| files.len() > MAX_FILES)
        .collect();
    assert!(spread.is_empty(), "{spread:?}");
}
