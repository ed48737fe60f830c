//! A worker that keeps a résumé, as docs/protocols/resume.md has it.

use std::fmt::Write;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::{Listener, Origin, Reply, Request, reply, within};

/// Where a worker tells its whole résumé.
const RESUME: &str = "/.well-known/worker-resume";

type Rule = Arc<dyn Fn(&Request) -> Reply + Send + Sync>;

/// A worker: an application that answers each request with its name, and beside it what the protocol has a worker say. Its
/// skills are those under the first classifier that asked; under any other its résumé is empty. Whatever it is told to do
/// otherwise holds from the next request on.
pub struct Worker {
    origin: Origin,
    part: Arc<Mutex<Part>>,
}

/// What a worker is, and says of itself.
struct Part {
    id: String,
    version: Option<String>,
    rev: u64,
    inflight: u64,
    /// The classifier under which the skills were earned, once one has asked.
    by: Option<String>,
    /// Class, score, and the revision that brought it. A score of 0 is a class that was dropped.
    skills: Vec<(String, f64, u64)>,
    application: Rule,
    /// What answers instead of the worker where the whole résumé is asked for.
    stand_in: Option<Rule>,
    /// What is said in `Worker-State` and in `Worker-Skills` instead of the truth.
    claims: Option<(String, String)>,
}

impl Worker {
    /// A worker, begun as the instance `id` with the scores in `skills`, on a free port.
    pub fn new(id: &str, skills: &[(&str, f64)]) -> Worker {
        Worker::on(Listener::new(), id, skills)
    }

    /// A worker that listens with `listener`.
    pub fn on(listener: Listener, id: &str, skills: &[(&str, f64)]) -> Worker {
        let name = id.to_owned();
        let part = Arc::new(Mutex::new(Part {
            id: id.to_owned(),
            version: None,
            rev: 1,
            inflight: 0,
            by: None,
            skills: skills.iter().map(|&(class, score)| (class.to_owned(), score, 1)).collect(),
            application: Arc::new(move |_| reply(200).cache("no-store").body(&name)),
            stand_in: None,
            claims: None,
        }));
        let state = Arc::clone(&part);
        let origin = Origin::on(listener, move |request| answer(&state, request));
        Worker { origin, part }
    }

    /// Has the application answer by `rule`.
    pub fn answers(&self, rule: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> &Worker {
        self.part().application = Arc::new(rule);
        self
    }

    /// Has `rule` answer where the whole résumé is asked for.
    pub fn tells(&self, rule: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> &Worker {
        self.part().stand_in = Some(Arc::new(rule));
        self
    }

    /// Says `state` in `Worker-State` and `skills` in `Worker-Skills`, whatever is true; neither where it is empty.
    pub fn claims(&self, state: &str, skills: &str) -> &Worker {
        self.part().claims = Some((state.to_owned(), skills.to_owned()));
        self
    }

    /// Says the truth again, in its fields and in the whole résumé.
    pub fn is_honest(&self) -> &Worker {
        let mut part = self.part();
        (part.claims, part.stand_in) = (None, None);
        drop(part);
        self
    }

    /// Announces a version.
    pub fn runs(&self, version: &str) -> &Worker {
        self.part().version = Some(version.to_owned());
        self
    }

    /// Says that so many requests are at it.
    pub fn is_busy_with(&self, inflight: u64) -> &Worker {
        self.part().inflight = inflight;
        self
    }

    /// Changes its score for a class, with a revision of its own; 0 drops the class.
    pub fn learns(&self, class: &str, score: f64) -> &Worker {
        let mut part = self.part();
        part.rev += 1;
        let rev = part.rev;
        part.skills.retain(|(known, ..)| known != class);
        part.skills.push((class.to_owned(), score, rev));
        drop(part);
        self
    }

    /// Begins anew as the instance `id`, with these skills and no others.
    pub fn restarts(&self, id: &str, skills: &[(&str, f64)]) -> &Worker {
        let mut part = self.part();
        (part.id, part.rev) = (id.to_owned(), 1);
        part.skills = skills.iter().map(|&(class, score)| (class.to_owned(), score, 1)).collect();
        drop(part);
        self
    }

    /// Its instance and the revision of its résumé, as a balancer says that it knows them.
    pub fn known(&self) -> String {
        let part = self.part();
        format!("{}.{}", part.id, part.rev)
    }

    /// Whether the latest request that it served shows that the balancer holds its résumé.
    pub fn is_known(&self) -> bool {
        let latest = self.served().pop();
        let known = latest.and_then(|request| parameter(request.field("request-class")?, "known"));
        known == Some(self.known())
    }

    /// Where it listens, as the URL of a backend.
    pub fn url(&self) -> String {
        self.origin.url()
    }

    /// The requests that the application got so far.
    pub fn served(&self) -> Vec<Request> {
        self.origin.requests().into_iter().filter(|request| request.path() != RESUME).collect()
    }

    /// The requests for the whole résumé so far.
    pub fn asked(&self) -> Vec<Request> {
        let whole = |request: &Request| request.path() == RESUME && request.method == "GET";
        self.origin.requests().into_iter().filter(whole).collect()
    }

    /// How often it was asked, on a connection, which instance and version it is.
    pub fn met(&self) -> usize {
        let met = |request: &&Request| request.path() == RESUME && request.method == "HEAD";
        self.origin.requests().iter().filter(met).count()
    }

    /// How often the whole résumé was asked for by a balancer that held none. One that asks whether what it holds still holds
    /// may do so once too often: what it heard of the worker meanwhile may have been what it was just being told.
    pub fn told_whole(&self) -> usize {
        self.asked().iter().filter(|request| !request.fields.has("if-none-match")).count()
    }

    /// Waits until the whole résumé was asked for `count` times, and gives the last of these requests.
    #[track_caller]
    pub fn is_asked(&self, count: usize) -> Request {
        within(&format!("request {count} for the résumé"), || {
            let mut asked = self.asked();
            (asked.len() >= count).then(|| asked.pop()).flatten()
        })
    }

    fn part(&self) -> MutexGuard<'_, Part> {
        self.part.lock().expect("no worker panics")
    }
}

fn answer(part: &Mutex<Part>, request: &Request) -> Reply {
    let part = || part.lock().expect("no worker panics");
    if request.path() == RESUME {
        let stand_in = part().stand_in.clone();
        return stand_in.map_or_else(|| part().whole(request), |rule| rule(request));
    }
    let application = Arc::clone(&part().application);
    // The application may take its time, and what is said of the worker is what holds then.
    let answer = application(request);
    match request.field("request-class") {
        Some(class) => part().sign(class, answer),
        None => answer,
    }
}

impl Part {
    /// Whether skills are those that were earned under the classifier `by`.
    fn earned_under(&mut self, by: &str) -> bool {
        self.by.get_or_insert_with(|| by.to_owned()) == by
    }

    fn whole(&mut self, request: &Request) -> Reply {
        let by = request.target.split_once("?by=").map_or("", |(_, by)| by).to_owned();
        let earned = self.earned_under(&by);
        let rev = if earned { self.rev } else { 1 };
        let (tag, state) = (format!("\"{}.{rev}\"", self.id), self.state(rev));
        if request.field("if-none-match") == Some(tag.as_str()) {
            return reply(304).with("ETag", &tag).with("Worker-State", &state).cache("no-store");
        }
        let skills: serde_json::Map<String, serde_json::Value> = self
            .skills
            .iter()
            .filter(|(_, score, _)| earned && *score > 0.0)
            .map(|(class, score, _)| (class.clone(), (*score).into()))
            .collect();
        let mut resume = serde_json::json!({
            "id": self.id, "rev": rev, "by": by, "inflight": self.inflight, "history": 9999, "skills": skills,
        });
        if let Some(version) = &self.version {
            resume["version"] = version.as_str().into();
        }
        reply(200)
            .with("ETag", &tag)
            .with("Worker-State", &state)
            .cache("no-store")
            .with("Content-Type", "application/json")
            .body(resume.to_string())
    }

    /// What it says of itself, beside the revision of its résumé.
    fn state(&self, rev: u64) -> String {
        let mut state = format!("id=\"{}\", rev={rev}, inflight={}", self.id, self.inflight);
        if let Some(version) = &self.version {
            let _ = write!(state, ", version=\"{version}\"");
        }
        state
    }

    /// Adds what the worker says of itself to an answer to a request of a class.
    fn sign(&mut self, class: &str, answer: Reply) -> Reply {
        if let Some((state, skills)) = &self.claims {
            let signed = if state.is_empty() { answer } else { answer.with("Worker-State", state) };
            return if skills.is_empty() { signed } else { signed.with("Worker-Skills", skills) };
        }
        let earned = parameter(class, "by").is_some_and(|by| self.earned_under(&by));
        let rev = if earned { self.rev } else { 1 };
        let signed = answer.with("Worker-State", &self.state(rev));
        let since = parameter(class, "known")
            .and_then(|known| known.strip_prefix(&format!("{}.", self.id)).and_then(|rev| rev.parse().ok()));
        let news: Vec<String> = self
            .skills
            .iter()
            .filter(|(_, _, of)| earned && since.is_some_and(|since: u64| *of > since))
            .map(|(class, score, _)| format!("\"{class}\";score={score:.3}"))
            .collect();
        if news.is_empty() { signed } else { signed.with("Worker-Skills", &news.join(", ")) }
    }
}

/// The value of a parameter of `Request-Class` that is a string.
pub(crate) fn parameter(class: &str, name: &str) -> Option<String> {
    let (_, value) = class.rsplit_once(&format!(";{name}=\""))?;
    value.split_once('"').map(|(value, _)| value.to_owned())
}
