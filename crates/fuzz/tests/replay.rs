//! Replays the corpus of every target, and mutations of it that are the same in every run.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use lockkeeper_fuzz::{TARGETS, Target, corpus, mutate, trial};

/// How many mutations are tried of each target, and for how long at most: a slow machine tries fewer, but some.
const MUTATIONS: u64 = 2_000;
const AT_LEAST: u64 = 100;
const FOR: Duration = Duration::from_millis(600);

fn inputs(target: &Target) -> Vec<(String, Vec<u8>)> {
    corpus::read(&corpus::folder(), target.name).expect("the corpus can be read")
}

#[test]
fn every_target_has_a_corpus_and_every_corpus_a_target() {
    let names: BTreeSet<String> = TARGETS.iter().map(|target| target.name.to_owned()).collect();
    assert_eq!(names.len(), TARGETS.len(), "two targets have the same name");
    let entries = std::fs::read_dir(corpus::folder()).expect("the corpus can be listed");
    let folders: BTreeSet<String> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    assert_eq!(folders, names);
    for target in TARGETS {
        let count = inputs(target).len();
        assert!(count >= 10, "`{}` has only {count} inputs", target.name);
    }
}

#[test]
fn the_corpus_holds() {
    let mut failures = Vec::new();
    for target in TARGETS {
        for (file, input) in inputs(target) {
            if let Err(why) = trial::holds(target, &input) {
                let path = corpus::folder().join(target.name).join(&file);
                failures.push(format!("{}/{file}: {why}\n  {}", target.name, trial::command(target, &path)));
            }
        }
    }
    assert!(failures.is_empty(), "\n{}\n", failures.join("\n"));
}

#[test]
fn mutations_of_the_corpus_hold() {
    let mut failures = Vec::new();
    for target in TARGETS {
        let inputs: Vec<Vec<u8>> = inputs(target).into_iter().map(|(_, input)| input).collect();
        let begun = Instant::now();
        for seed in 0..MUTATIONS {
            if seed >= AT_LEAST && begun.elapsed() > FOR {
                break;
            }
            let input = mutate::input(&inputs, target.words, seed);
            if let Err(why) = trial::holds(target, &input) {
                failures.push(trial::report(target, &input, &why));
                break;
            }
        }
    }
    assert!(failures.is_empty(), "\n{}\n", failures.join("\n\n"));
}
