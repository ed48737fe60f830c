//! Tokens and comments.

use crate::source::{FileId, Span};

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TokenKind {
    /// A name or keyword: a letter, then letters, digits, `_` and `-`.
    Name,
    /// Digits.
    Integer,
    /// Digits with a point after at least one of them.
    Real,
    /// A string of any kind; the delimiters are part of the token.
    String(StringKind),
    /// A BLOB literal `:…:`.
    Blob,
    /// A block of C: `C{ … }C`.
    InlineC,
    /// `{`
    OpenBrace,
    /// `}`
    CloseBrace,
    /// `(`
    OpenParenthesis,
    /// `)`
    CloseParenthesis,
    /// `[`, which the grammar has nowhere.
    OpenBracket,
    /// `]`, which the grammar has nowhere.
    CloseBracket,
    /// `;`
    Semicolon,
    /// `,`
    Comma,
    /// `.`
    Dot,
    /// `:`
    Colon,
    /// `=`
    Assign,
    /// `+=`
    AddAssign,
    /// `-=`
    SubtractAssign,
    /// `*=`
    MultiplyAssign,
    /// `/=`
    DivideAssign,
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `~`
    Match,
    /// `!~`
    NotMatch,
    /// `!`
    Not,
    /// `&&`
    And,
    /// `||`
    Or,
    /// `+`
    Plus,
    /// `-`
    Minus,
    /// `*`
    Star,
    /// `/`
    Slash,
    /// `%`
    Percent,
    /// Characters that no token begins with.
    Unknown,
    /// The end of the file.
    End,
}

/// The delimiters of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StringKind {
    /// `"…"`, within one line.
    Short,
    /// `{"…"}`
    Long,
    /// `"""…"""`
    Triple,
    /// Quotes that VCL does not have, such as `'…'`. The lexer reported them.
    Foreign,
}

/// A token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// The kind.
    pub kind: TokenKind,
    /// Whether the lexer reported that its extent is uncertain. Errors next to it are consequences.
    pub is_damaged: bool,
    /// The first byte.
    pub start: u32,
    /// The byte after the last.
    pub end: u32,
}

impl Token {
    /// The span of the token in `file`.
    pub fn span(self, file: FileId) -> Span {
        Span::new(file, self.start, self.end)
    }
}

/// A comment. Its text reaches to the end of the line, without the line break, or to `*/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Comment {
    /// The comment with its delimiters.
    pub span: Span,
    /// The delimiters.
    pub kind: CommentKind,
}

/// The delimiters of a comment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommentKind {
    /// `# …`
    Hash,
    /// `// …`
    Slashes,
    /// `/* … */`
    Block,
}
