//! The behaviour of an origin, which the request itself names in `X-Behaviour`.

use crate::pool::Pool;
use crate::random::Random;

/// The field with the behaviour, and with the attempt that it is for.
pub(crate) const FIELD: &str = "X-Behaviour";

macro_rules! behaviours {
    ($($variant:ident $word:literal $text:literal),* $(,)?) => {
        /// What an origin does.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Behaviour { $(#[doc = $text] $variant),* }

        impl Behaviour {
            pub(crate) const fn word(self) -> &'static str {
                match self { $(Behaviour::$variant => $word),* }
            }

            fn parse(word: &str) -> Option<Behaviour> {
                match word { $($word => Some(Behaviour::$variant),)* _ => None }
            }
        }
    };
}

behaviours! {
    Plain "plain" "Answers.",
    Chunked "chunked" "Answers with a chunked body.",
    UntilClose "until-close" "Answers with a body that ends with the connection.",
    Delayed "delayed" "Answers after a few milliseconds.",
    Slow "slow" "Answers after a tenth of a second.",
    Hints "hints" "Sends 102 and 103 before the answer.",
    Dribbles "dribbles" "Sends the answer in pieces that end anywhere.",
    ThenCloses "then-closes" "Answers with `Connection: close`.",
    Vanishes "vanishes" "Answers, and closes the connection some milliseconds later.",
    Hangs "hangs" "Sends nothing.",
    Resets "resets" "Resets the connection.",
    Closes "closes" "Closes the connection without a word.",
    Truncates "truncates" "Closes the connection in the middle of the body.",
    Breaks "breaks" "Resets the connection in the middle of the body.",
    Twice "twice" "Sends a second response in the same write.",
    Late "late" "Sends a second response some milliseconds later.",
    HeadBody "head-body" "Sends a body with the response to HEAD, in the same write.",
    HeadBodyLate "head-body-late" "Sends a body after the response to HEAD, some milliseconds later.",
    Early "early" "Answers before it has read the body of the request.",
    EarlyCloses "early-closes" "Answers before it has read the body, and closes.",
    Refuses "refuses" "Answers 417 instead of 100, and closes.",
    Mute "mute" "Sends no 100 although the client waits for it.",
}

impl Behaviour {
    /// One that suits the pool and the method.
    pub(crate) fn choose(pool: Pool, method: &str, random: &mut Random) -> Behaviour {
        use Behaviour::*;
        let well: &[(u64, Behaviour)] = &[
            (8, Plain),
            (3, Chunked),
            (1, UntilClose),
            (3, Delayed),
            (1, Hints),
            (2, Dribbles),
            (1, ThenCloses),
        ];
        random.weighted(match (pool, method) {
            (Pool::Retry, _) => &[
                (8, Plain),
                (2, Chunked),
                (2, Hangs),
                (3, Resets),
                (3, Closes),
                (2, Truncates),
                (2, Breaks),
                (3, Vanishes),
                (1, ThenCloses),
                (1, UntilClose),
            ],
            (Pool::Cgi, "POST") => &[
                (8, Plain),
                (2, Delayed),
                (1, Dribbles),
                (1, Closes),
                (1, Resets),
                (1, Breaks),
                (1, Truncates),
            ],
            (Pool::Cgi, _) => &[
                (8, Plain),
                (2, Chunked),
                (1, UntilClose),
                (3, Delayed),
                (1, Hints),
                (1, Dribbles),
                (1, Hangs),
                (2, Resets),
                (2, Closes),
                (2, Truncates),
                (2, Breaks),
            ],
            (Pool::Hedge, _) => &[(6, Plain), (3, Slow), (3, Delayed), (1, Chunked)],
            (Pool::Queue, _) => &[(2, Plain), (6, Delayed), (1, Slow)],
            (Pool::Stray, "HEAD") => &[(3, Plain), (3, HeadBody), (3, HeadBodyLate)],
            (Pool::Stray, _) => &[(6, Plain), (2, Chunked), (3, Twice), (3, Late), (1, Hints), (1, Dribbles)],
            (Pool::Upload, _) => &[
                (8, Plain),
                (2, Delayed),
                (2, Early),
                (1, Dribbles),
                (2, EarlyCloses),
                (2, Refuses),
                (1, Mute),
                (1, Hints),
                (1, Twice),
                (1, Late),
                (1, Closes),
                (1, Resets),
                (1, Breaks),
                (1, Truncates),
            ],
            _ => well,
        })
    }

    /// The value of the field: the behaviour holds for the first attempt only, or for all.
    pub(crate) fn value(self, first_only: bool) -> String {
        format!("{}{}", self.word(), if first_only { " once" } else { "" })
    }

    /// The behaviour that a value asks for on attempt number `attempt`, from 1.
    pub(crate) fn asked(value: &str, attempt: u32) -> Behaviour {
        match value.split_once(' ') {
            Some(_) if attempt > 1 => Behaviour::Plain,
            Some((word, _)) => Behaviour::parse(word).unwrap_or(Behaviour::Plain),
            None => Behaviour::parse(value).unwrap_or(Behaviour::Plain),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Behaviour;

    #[test]
    fn a_behaviour_for_the_first_attempt_is_no_other_ones() {
        let value = Behaviour::Resets.value(true);
        assert_eq!(Behaviour::asked(&value, 1), Behaviour::Resets);
        assert_eq!(Behaviour::asked(&value, 2), Behaviour::Plain);
        assert_eq!(Behaviour::asked(&Behaviour::Late.value(false), 2), Behaviour::Late);
    }
}
