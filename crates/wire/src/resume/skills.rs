//! Scores by class, and `Worker-Skills`: the scores that changed.

use super::{MAX_CLASS, Malformed, text};
use sandarac_message::{Fields, Name};
use sfv::visitor::{EntryVisitor, Ignored, InnerListVisitor, ItemVisitor, ListVisitor, ParameterVisitor};
use sfv::{BareItemFromInput, KeyRef, Parser};
use std::borrow::Cow;
use std::convert::Infallible;

/// The most classes of a résumé.
pub const MAX_CLASSES: usize = 100_000;

/// The most bytes of `Worker-Skills`, lines joined. The worker omits a longer list, and the balancer fetches
/// the whole résumé.
pub const MAX_SKILLS_FIELD: usize = 4096;

/// Scores by class, in the order received. The last of repeated classes counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Skills {
    /// The classes, concatenated: a whole résumé would be a hundred thousand allocations.
    classes: Vec<u8>,
    /// The end of each class, and its score.
    scores: Vec<(u32, f64)>,
}

impl Skills {
    /// No skills.
    pub fn new() -> Skills {
        Skills::default()
    }

    /// Adds a class with its score in requests per second, 0 if it was dropped.
    ///
    /// # Errors
    /// [`Malformed::Class`], [`Malformed::Score`] and [`Malformed::TooMany`]; the class is not added.
    pub fn push(&mut self, class: &[u8], score: f64) -> Result<(), Malformed> {
        if class.len() > MAX_CLASS {
            return Err(Malformed::Class);
        }
        let score = text::score(score)?;
        if self.scores.len() == MAX_CLASSES {
            return Err(Malformed::TooMany);
        }
        self.classes.extend_from_slice(class);
        // Far below the limit of 32 bits: this many classes of this many bytes are 26 MB.
        self.scores.push((self.classes.len() as u32, score));
        Ok(())
    }

    /// The number of classes, with repetitions.
    pub fn len(&self) -> usize {
        self.scores.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.scores.is_empty()
    }

    /// Each class with its score in requests per second, 0 for a dropped one.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], f64)> {
        let mut start = 0;
        self.scores.iter().map(move |&(end, score)| {
            let class = &self.classes[start..end as usize];
            start = end as usize;
            (class, score)
        })
    }

    /// Reads `Worker-Skills`; `None` if it is absent.
    pub fn read(fields: Fields<'_>) -> Option<Result<Skills, Malformed>> {
        let value = text::joined(fields, Name::WorkerSkills, MAX_SKILLS_FIELD)?;
        Some(value.and_then(|value| Skills::parse(&value)))
    }

    /// Reads a value of `Worker-Skills`, its lines joined.
    ///
    /// # Errors
    /// If anything is wrong: [`Malformed::Syntax`] takes precedence.
    pub fn parse(value: &[u8]) -> Result<Skills, Malformed> {
        text::bounded(value, MAX_SKILLS_FIELD)?;
        let list = List { skills: Skills::new(), outcome: Ok(()) };
        let list = Parser::new(value).parse_list_with_visitor(list).map_err(|_| Malformed::Syntax)?;
        list.outcome.map(|()| list.skills)
    }

    /// Appends the value of `Worker-Skills` in its canonical form; nothing on an error.
    ///
    /// # Errors
    /// [`Malformed::TooLarge`] if it would be longer than a reader accepts.
    pub fn write(&self, out: &mut Vec<u8>) -> Result<(), Malformed> {
        let start = out.len();
        for (class, score) in self.iter() {
            if out.len() > start {
                out.extend_from_slice(b", ");
            }
            text::put_class(out, class);
            out.extend_from_slice(b";score=");
            if score == 0.0 {
                out.push(b'0')
            } else {
                text::put_score(out, score)
            }
            if out.len() - start > MAX_SKILLS_FIELD {
                out.truncate(start);
                return Err(Malformed::TooLarge);
            }
        }
        Ok(())
    }
}

/// The list as read so far. A fault in a member is kept to the end, because a syntax error takes precedence.
struct List {
    skills: Skills,
    outcome: Result<(), Malformed>,
}

impl List {
    fn note(&mut self, outcome: Result<(), Malformed>) {
        self.outcome = self.outcome.and(outcome);
    }
}

impl<'de> ListVisitor<'de> for List {
    type Out = List;
    type Error = Infallible;

    fn entry(&mut self) -> Result<impl EntryVisitor<'de>, Infallible> {
        Ok(Entry(self))
    }

    fn finish(self) -> Result<List, Infallible> {
        Ok(self)
    }
}

struct Entry<'l>(&'l mut List);

impl<'de> EntryVisitor<'de> for Entry<'_> {
    type Error = Infallible;

    fn item(self) -> Result<impl ItemVisitor<'de>, Infallible> {
        Ok(self)
    }

    fn inner_list(self) -> Result<impl InnerListVisitor<'de>, Infallible> {
        self.0.note(Err(Malformed::Class));
        Ok(Ignored)
    }
}

impl<'de> ItemVisitor<'de> for Entry<'_> {
    type Out = ();
    type Error = Infallible;

    fn bare_item(
        self,
        item: BareItemFromInput<'de>,
    ) -> Result<impl ParameterVisitor<'de, Out = ()>, Infallible> {
        Ok(Skill { list: self.0, class: text::class(item), score: Err(Malformed::Score) })
    }
}

struct Skill<'l, 'de> {
    list: &'l mut List,
    class: Result<Cow<'de, [u8]>, Malformed>,
    score: Result<f64, Malformed>,
}

impl<'de> ParameterVisitor<'de> for Skill<'_, 'de> {
    type Out = ();
    type Error = Infallible;

    fn parameter(&mut self, key: &'de KeyRef, value: BareItemFromInput<'de>) -> Result<(), Infallible> {
        if key.as_str() == "score" {
            self.score = match value {
                BareItemFromInput::Decimal(value) => Ok(value.into()),
                // Fifteen digits are exact.
                BareItemFromInput::Integer(value) => Ok(i64::from(value) as f64),
                _ => Err(Malformed::Score),
            };
        }
        Ok(())
    }

    fn finish(self) -> Result<(), Infallible> {
        let Skill { list, class, score } = self;
        let outcome = class.and_then(|class| list.skills.push(&class, score?));
        list.note(outcome);
        Ok(())
    }
}
