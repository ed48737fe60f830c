//! Templates: whole bodies that were parsed once.

use crate::parser::{Parser, Part};

/// The most parts of a template. A page with more is parsed each time it is sent.
pub const MAX_PARTS: usize = 1024;

/// The parts of a whole body, in order. Its text is in the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template(Box<[Part]>);

/// A template in the making.
#[derive(Debug, Default)]
pub struct TemplateBuilder {
    parser: Parser,
    /// What one piece of the body has completed.
    found: Vec<Part>,
    parts: Vec<Part>,
}

impl Template {
    /// The parts.
    pub fn parts(&self) -> &[Part] {
        &self.0
    }

    /// Whether a body of `len` bytes has no markup, and is sent as it is.
    pub fn is_plain(&self, len: u64) -> bool {
        match &*self.0 {
            [] => len == 0,
            [Part::Text(text)] => *text == (0..len),
            _ => false,
        }
    }

    /// Passes the size of each allocation to `note`.
    pub fn allocations(&self, mut note: impl FnMut(usize)) {
        note(size_of_val(&*self.0));
        for part in &self.0 {
            match part {
                Part::Text(_) => {}
                Part::Include(include) => {
                    note(size_of_val(&**include));
                    include.allocations(&mut note);
                }
                Part::Variable(variable) => variable.allocations(&mut note),
            }
        }
    }
}

impl TemplateBuilder {
    /// Takes the next bytes of the body.
    pub fn push(&mut self, bytes: &[u8]) {
        self.parser.push(bytes, &mut self.found);
        self.merge();
    }

    /// Ends the body. `None` if it has more than [`MAX_PARTS`] parts.
    pub fn finish(mut self) -> Option<Template> {
        std::mem::take(&mut self.parser).finish(&mut self.found);
        self.merge();
        Some(Template(self.parts.into())).filter(|template| template.0.len() <= MAX_PARTS)
    }

    /// Joins ranges of text that follow one another.
    fn merge(&mut self) {
        for part in self.found.drain(..) {
            if let (Some(Part::Text(before)), Part::Text(text)) = (self.parts.last_mut(), &part)
                && before.end == text.start
            {
                before.end = text.end;
            } else if self.parts.len() <= MAX_PARTS {
                // One too many tells that there are too many.
                self.parts.push(part);
            }
        }
    }
}
