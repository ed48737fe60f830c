//! Bounds on what one program may cost.

/// Bounds on a program. Each is an error with its own name if it is reached; what follows is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The bytes of all files together. The largest of 293 files in public projects has 10 417 lines; lists
    /// of networks have more.
    pub bytes: usize,
    /// The tokens of all files together, because the tree takes up to 120 bytes for each.
    pub tokens: usize,
    /// The files, each counted as often as it is included.
    pub files: usize,
    /// The includes within includes.
    pub include_depth: usize,
    /// The brackets, blocks, operators and calls within each other. The parser uses the stack for these, so
    /// that 100 levels need less than 1 MiB of it.
    pub nesting: usize,
    /// The errors, because later ones are seldom read.
    pub errors: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            bytes: 8 << 20,
            tokens: 1_000_000,
            files: 1000,
            include_depth: 20,
            nesting: 100,
            errors: 100,
        }
    }
}
