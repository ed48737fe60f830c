//! `pools` and `pool`: the state of pools, and commands to them.

use std::io::{self, Write};

use sandarac_message::printable::printable;

use super::output::{json, table};
use crate::admin::{
    AddBackend, AskPools, BackendDetail, ChoiceDetail, ClassDetail, DrainBackend, Ordered, PoolDetail,
    RemoveBackend, SkillsDetail,
};
use crate::cli::{BackendArgs, PoolArgs, PoolOrder, PoolsArgs};
use crate::failure::Failure;
use crate::human::{count, grouped, lasting, percent};
use crate::stderr::print_line;

/// The most workers shown per class.
const MAX_SKILLED_SHOWN: usize = 6;

/// `pools`.
pub fn pools(args: &PoolsArgs) -> Result<(), Failure> {
    let ask = AskPools { names: args.names.clone(), classes: args.classes, class: args.class.clone() };
    let pools = args.process.client()?.pools(&ask)?;
    if args.json {
        return json(&pools);
    }
    let shown: Vec<String> = pools.pools.iter().map(|pool| show(pool, args.choices)).collect();
    io::stdout().write_all(shown.join("\n").as_bytes())?;
    Ok(())
}

/// `pool`.
pub fn pool(args: &PoolArgs) -> Result<(), Failure> {
    let client = |args: &BackendArgs| args.process.client();
    let said = |args: &BackendArgs, ordered: &Ordered, done: &str| match args.json {
        true => json(ordered),
        false => Ok(writeln!(io::stdout(), "{} {done}", ordered.backend)?),
    };
    match &args.order {
        PoolOrder::Add(add) => {
            let BackendArgs { pool, backend, .. } = add.backend.clone();
            let order = AddBackend { pool, backend, weight: add.weight };
            let ordered = client(&add.backend)?.add_backend(&order)?;
            let now = count(ordered.backends, "backend");
            said(&add.backend, &ordered, &format!("is in pool {}, which has {now} now", ordered.pool))
        }
        PoolOrder::Remove(args) => {
            let BackendArgs { pool, backend, .. } = args.clone();
            let ordered = client(args)?.remove_backend(&RemoveBackend { pool, backend })?;
            let now = count(ordered.backends, "backend");
            said(args, &ordered, &format!("is no longer in pool {}, which has {now} now", ordered.pool))
        }
        PoolOrder::Drain(drain) => {
            let BackendArgs { pool, backend, .. } = drain.backend.clone();
            let order = DrainBackend { pool, backend, undo: drain.undo };
            let ordered = client(&drain.backend)?.drain_backend(&order)?;
            let done = match drain.undo {
                true => "gets requests again".to_owned(),
                false => {
                    format!("gets no new requests; {} in flight", count(ordered.in_flight, "request"))
                }
            };
            said(&drain.backend, &ordered, &done)?;
            if !drain.undo && ordered.healthy == Some(0) {
                let Ordered { pool, backend, .. } = ordered;
                print_line(format_args!(
                    "sandarac: warning: no other backend of pool {pool} is healthy, so that requests may fail; \
                     `sandarac pool drain {pool} {backend} --undo` gives this one requests again"
                ));
            }
            Ok(())
        }
    }
}

fn show(pool: &PoolDetail, choices: usize) -> String {
    let mut out = format!("pool {}: {}", pool.name, pool.algorithm);
    if let Some(classifier) = &pool.classifier {
        let text = printable(&classifier.text);
        out.push_str(&format!(", classes by {text} (fingerprint {})", classifier.fingerprint));
    }
    out.push('\n');
    let mut facts =
        vec![count(pool.in_flight, "request") + " in flight", format!("mean backlog {}", pool.mean_backlog)];
    facts.extend(pool.oldest_seconds.map(|seconds| format!("the oldest for {}", lasting(seconds))));
    facts.push(format!("{} of {} waiting", grouped(pool.queue.waiting), grouped(pool.queue.limit)));
    if let Some(skills) = &pool.skills {
        facts.push(told_of(skills));
    }
    out.push_str(&format!("{}\n", facts.join(", ")));
    if let Some(table) = pool.classifier.as_ref().and_then(|classifier| classifier.table.as_ref()) {
        out.push_str(&format!("table of classes: {} in force", count(table.lines, "line")));
        match &table.lost {
            Some(lost) if table.lines > 0 => {
                out.push_str(&format!("; LOST, the one before stays: {}", printable(lost)));
            }
            Some(lost) => out.push_str(&format!("; LOST, no request has a class: {}", printable(lost))),
            None => {}
        }
        out.push('\n');
    }
    for source in &pool.sources {
        out.push_str(&format!(
            "source: {}, {}",
            printable(&source.source),
            count(source.backends, "backend")
        ));
        if source.ignored > 0 {
            out.push_str(&format!(", {} ignored", grouped(source.ignored)));
        }
        for (name, value) in &source.settings {
            out.push_str(&format!(", {name} {value}"));
        }
        if !source.told {
            out.push_str(", nothing heard of it yet");
        }
        if let Some(lost) = &source.lost {
            let stays = if source.backends > 0 { ", its last list stays" } else { "" };
            out.push_str(&format!("; LOST{stays}: {}", printable(lost)));
        }
        out.push('\n');
    }
    for removed in &pool.removed {
        out.push_str(&format!("removed by order: {removed}\n"));
    }
    out.push('\n');
    out.push_str(&table(&backend_rows(pool), 7));
    if !pool.classes.is_empty() {
        out.push('\n');
        out.push_str(&table(&class_rows(&pool.classes), 1));
    }
    let shown = &pool.choices[..pool.choices.len().min(choices)];
    if !shown.is_empty() {
        out.push('\n');
        out.push_str(&table(&choice_rows(shown), 1));
    }
    out
}

/// The number of known skills, and their sources.
fn told_of(skills: &SkillsDetail) -> String {
    let SkillsDetail { reported, inferred, assumed, .. } = *skills;
    let words = [(reported, "reported"), (inferred, "inferred"), (assumed, "assumed")];
    let words: Vec<_> = words.into_iter().filter(|&(count, _)| count > 0).collect();
    let classes = if skills.classes == 1 { "class" } else { "classes" };
    let all = format!("{} in {} {classes}", count(skills.skills, "skill"), grouped(skills.classes));
    let whose = match words[..] {
        [] => all,
        [(_, word)] => format!("{all}, all {word}"),
        _ => {
            let words = words.iter().map(|&(count, word)| format!("{} {word}", grouped(count)));
            format!("{all} ({})", words.collect::<Vec<_>>().join(", "))
        }
    };
    match skills.forgotten {
        0 => whose,
        forgotten => format!("{whose}, {} forgotten for want of room", grouped(forgotten)),
    }
}

fn cells<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(str::to_owned).to_vec()
}

fn backend_rows(pool: &PoolDetail) -> Vec<Vec<String>> {
    let mut rows = vec![cells([
        "in flight",
        "oldest",
        "backlog",
        "failed",
        "weight",
        "skills",
        "picks",
        "state",
        "backend",
        "",
    ])];
    rows.extend(pool.backends.iter().map(|backend| {
        let BackendDetail { in_flight, mean_backlog, faults, weight, picks, address, .. } = backend;
        let state = match (backend.state.as_str(), backend.ejected_seconds) {
            ("ejected", Some(seconds)) => format!("ejected for {}", lasting(seconds)),
            ("failing", _) if backend.spared => "failing its checks, kept".to_owned(),
            (state, _) => state.to_owned(),
        };
        let version = backend.version.as_deref().map(|version| format!("version {}", printable(version)));
        let resume = backend
            .resume
            .as_ref()
            .map(|resume| format!("résumé {}.{}", printable(&resume.instance), resume.revision));
        let of_itself: Vec<String> = version.into_iter().chain(resume).collect();
        vec![
            grouped(*in_flight),
            backend.oldest_seconds.map_or_else(|| "–".to_owned(), lasting),
            mean_backlog.to_string(),
            percent(*faults),
            weight.to_string(),
            backend.skills.map_or_else(|| "–".to_owned(), grouped),
            grouped(*picks),
            state,
            address.clone(),
            of_itself.join(", "),
        ]
    }));
    rows
}

fn class_rows(classes: &[ClassDetail]) -> Vec<Vec<String>> {
    let mut rows = vec![cells(["share", "class", "skilled workers, requests per second"])];
    rows.extend(classes.iter().map(|class| {
        let worker = |skill: &crate::admin::SkillDetail| {
            let name = skill.backend.as_deref().unwrap_or("(gone)");
            let score = skill.score.map_or_else(|| "(assumed)".to_owned(), |score| score.to_string());
            format!("{name} {score}")
        };
        let mut workers: Vec<String> = class.skilled.iter().take(MAX_SKILLED_SHOWN).map(worker).collect();
        if class.skilled.len() > MAX_SKILLED_SHOWN {
            workers.push(format!("{} more", class.skilled.len() - MAX_SKILLED_SHOWN));
        }
        vec![percent(class.share), printable(&class.name), workers.join(", ")]
    }));
    rows
}

fn choice_rows(choices: &[ChoiceDetail]) -> Vec<Vec<String>> {
    let mut rows = vec![cells(["s ago", "why", "backend", "class"])];
    rows.extend(choices.iter().map(|choice| {
        let mut why = choice.reason.clone();
        if choice.tried > 0 {
            why.push_str(&format!(", after {} tried", choice.tried));
        }
        vec![
            format!("{:.3}", choice.ago_seconds),
            why,
            choice.backend.clone().unwrap_or_else(|| "(gone)".to_owned()),
            choice.class.as_deref().map_or_else(|| "–".to_owned(), printable),
        ]
    }));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::{ClassifierDetail, QueueDetail, ResumeDetail, SkillDetail, SourceDetail, TableDetail};

    fn backend(address: &str, state: &str) -> BackendDetail {
        BackendDetail {
            address: address.to_owned(),
            weight: 1,
            state: state.to_owned(),
            spared: false,
            ejected_seconds: None,
            in_flight: 0,
            oldest_seconds: None,
            mean_backlog: 0.0,
            faults: 0.0,
            version: None,
            resume: None,
            skills: None,
            picks: 0,
            connect_failures: 0,
        }
    }

    #[test]
    fn a_pool_reads_as_tables() {
        let busy = BackendDetail {
            in_flight: 2,
            oldest_seconds: Some(0.31),
            mean_backlog: 1.25,
            faults: 0.05,
            version: Some("7\u{1b}[2J".to_owned()),
            resume: Some(ResumeDetail { instance: "4f2a".to_owned(), revision: 12 }),
            skills: Some(1),
            picks: 1204,
            ..backend("http://a:8000", "healthy")
        };
        let out =
            BackendDetail { ejected_seconds: Some(2.503), skills: Some(0), ..backend("unix:/b", "ejected") };
        let skill = |backend: Option<&str>, score, by: &str| SkillDetail {
            backend: backend.map(str::to_owned),
            score,
            by: by.to_owned(),
        };
        let pool = PoolDetail {
            name: "app".to_owned(),
            algorithm: "resume".to_owned(),
            classifier: Some(ClassifierDetail {
                text: "host".to_owned(),
                fingerprint: "00000000000000ff".to_owned(),
                table: Some(TableDetail { lines: 1, lost: Some("absent: /classes".to_owned()) }),
            }),
            single_version: false,
            settings: [("variance".to_owned(), 4.5)].into(),
            sources: vec![SourceDetail {
                source: "sockets in /run/workers".to_owned(),
                told: true,
                backends: 2,
                ignored: 1,
                settings: [("variance".to_owned(), 4.5)].into(),
                lost: Some("no such directory".to_owned()),
            }],
            removed: vec!["http://old:80".to_owned()],
            in_flight: 2,
            mean_backlog: 0.625,
            oldest_seconds: Some(0.31),
            queue: QueueDetail { waiting: 0, limit: 1000, queued: 3, refused: 0 },
            skills: Some(SkillsDetail {
                by: "reported".to_owned(),
                classes: 1,
                skills: 2,
                reported: 1,
                inferred: 0,
                assumed: 1,
                forgotten: 0,
                refused: 0,
            }),
            backends: vec![busy, out],
            classes: vec![ClassDetail {
                name: "www.example".to_owned(),
                share: 0.5,
                skilled: vec![
                    skill(Some("http://a:8000"), Some(210.5), "reported"),
                    skill(None, None, "assumed"),
                ],
            }],
            choices: vec![ChoiceDetail {
                ago_seconds: 0.25,
                class: Some("www.example".to_owned()),
                backend: Some("http://a:8000".to_owned()),
                reason: "best-score".to_owned(),
                tried: 0,
            }],
        };
        assert_eq!(
            show(&pool, 10),
            "\
pool app: resume, classes by host (fingerprint 00000000000000ff)
2 requests in flight, mean backlog 0.625, the oldest for 0.31 s, 0 of 1 000 waiting, 2 skills in 1 class (1 reported, 1 assumed)
table of classes: 1 line in force; LOST, the one before stays: absent: /classes
source: sockets in /run/workers, 2 backends, 1 ignored, variance 4.5; LOST, its last list stays: no such directory
removed by order: http://old:80

in flight  oldest  backlog  failed  weight  skills  picks  state              backend
        2  0.31 s     1.25   5.0 %       1       1  1 204  healthy            http://a:8000  version 7\u{fffd}[2J, résumé 4f2a.12
        0       –        0   0.0 %       1       0      0  ejected for 2.5 s  unix:/b

 share  class        skilled workers, requests per second
50.0 %  www.example  http://a:8000 210.5, (gone) (assumed)

s ago  why         backend        class
0.250  best-score  http://a:8000  www.example
"
        );
        assert!(!show(&pool, 0).contains("s ago"));
    }

    /// Regression: a draining backend was shown as `draining for 1.003 s`.
    #[test]
    fn only_an_ejection_is_told_with_how_long_it_lasts() {
        let pool = |state| PoolDetail {
            backends: vec![BackendDetail {
                ejected_seconds: Some(1.003),
                spared: true,
                ..backend("http://a", state)
            }],
            ..PoolDetail::default()
        };
        let state = |state| backend_rows(&pool(state))[1][7].clone();
        assert_eq!(
            ["draining", "ejected", "failing"].map(state),
            ["draining", "ejected for 1 s", "failing its checks, kept"]
        );
    }

    #[test]
    fn skills_are_told_with_whose_word_they_are() {
        let skills = |reported, inferred, assumed, forgotten| SkillsDetail {
            by: "reported".to_owned(),
            classes: 2,
            skills: reported + inferred + assumed,
            reported,
            inferred,
            assumed,
            forgotten,
            refused: 0,
        };
        assert_eq!(told_of(&skills(0, 1, 0, 0)), "1 skill in 2 classes, all inferred");
        assert_eq!(
            told_of(&skills(1200, 3, 0, 7)),
            "1 203 skills in 2 classes (1 200 reported, 3 inferred), 7 forgotten for want of room"
        );
        assert_eq!(told_of(&skills(0, 0, 0, 0)), "0 skills in 2 classes");
    }
}
