//! Names and expressions.

use crate::source::Span;
use crate::token::StringKind;

/// A name. Header names may be written in quotes.
#[derive(Clone, Debug)]
pub struct Name {
    /// The name without quotes.
    pub text: Box<str>,
    /// The name as written, with its quotes.
    pub span: Span,
    /// Whether it is written in quotes.
    pub is_quoted: bool,
}

/// Names joined by dots: a variable, a symbol or a function, such as `req.http.Host`, `std.log` or `default`.
#[derive(Clone, Debug)]
pub struct Path {
    /// The names in order; at least one.
    pub names: Vec<Name>,
    /// From the first name to the last.
    pub span: Span,
}

impl Path {
    /// The names joined by dots, without quotes.
    pub fn text(&self) -> String {
        let names: Vec<&str> = self.names.iter().map(|name| &*name.text).collect();
        names.join(".")
    }

    /// Whether it is `text`, compared byte by byte.
    pub fn is(&self, text: &str) -> bool {
        let mut names = self.names.iter();
        text.split('.').all(|part| names.next().is_some_and(|name| &*name.text == part))
            && names.next().is_none()
    }

    /// The name, if it is only one.
    pub fn single(&self) -> Option<&Name> {
        match self.names.as_slice() {
            [name] => Some(name),
            _ => None,
        }
    }
}

/// A string literal.
#[derive(Clone, Copy, Debug)]
pub struct StringLiteral {
    /// The delimiters.
    pub kind: StringKind,
    /// The literal with its delimiters.
    pub span: Span,
    /// The text between the delimiters.
    pub content: Span,
    /// Whether the text has `%` before two hexadecimal digits, which VCL 2 decodes.
    pub has_escapes: bool,
}

/// An expression.
#[derive(Clone, Debug)]
pub struct Expression {
    /// The kind with its parts.
    pub kind: ExpressionKind,
    /// From the first token to the last.
    pub span: Span,
}

/// The kinds of expressions.
#[derive(Clone, Debug)]
pub enum ExpressionKind {
    /// A string literal.
    String(StringLiteral),
    /// An integer.
    Integer(i64),
    /// A real number.
    Real(f64),
    /// A number with a unit of time.
    Duration {
        /// The length in seconds.
        seconds: f64,
        /// The unit as written.
        unit: Span,
    },
    /// A number with a unit of bytes.
    Bytes {
        /// The number of bytes; units are powers of 1024.
        bytes: f64,
        /// The unit as written.
        unit: Span,
    },
    /// A number directly followed by a word that is no unit. It was reported.
    UnknownUnit {
        /// The number.
        number: f64,
        /// The word.
        unit: Span,
    },
    /// `true` or `false`, in any case.
    Boolean(bool),
    /// A BLOB literal; the span is that of the base64 between the colons.
    Blob(Span),
    /// A variable, a symbol, or a word that an argument may be.
    Path(Path),
    /// A call of a function or method by its path.
    Call(Call),
    /// A property or method of a value that is no path, such as `("a" + "b").upper()` or
    /// `pool.backend().name`.
    Member(Box<MemberAccess>),
    /// An expression in parentheses.
    Parenthesized(Box<Expression>),
    /// `! …`
    Not(Box<Expression>),
    /// `- …`
    Negative(Box<Expression>),
    /// Operands joined by operators of one precedence.
    Chain(Chain),
    /// Two operands and a comparison.
    Comparison(Box<Comparison>),
    /// A part that could not be read. It was reported.
    Invalid,
}

/// Operands joined by operators of one precedence, from left to right: `a || b || c`, `a + b - c`.
#[derive(Clone, Debug)]
pub struct Chain {
    /// The first operand.
    pub first: Box<Expression>,
    /// The others, at least one.
    pub rest: Vec<ChainLink>,
}

/// An operator and the operand after it.
#[derive(Clone, Debug)]
pub struct ChainLink {
    /// The operator.
    pub operator: LinkOperator,
    /// The operator as written; empty, at the end of the operand before, for [`LinkOperator::SideBySide`].
    pub operator_span: Span,
    /// The operand.
    pub operand: Expression,
}

/// An operator of a chain. `Or` has the lowest precedence, then `And`, then the sums, then the products.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkOperator {
    /// `||`
    Or,
    /// `&&`
    And,
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// Texts without an operator between them, as VCL 2 joins them.
    SideBySide,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%`
    Remainder,
}

/// A comparison.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The left operand.
    pub left: Expression,
    /// The operator.
    pub operator: ComparisonOperator,
    /// The operator as written.
    pub operator_span: Span,
    /// The right operand.
    pub right: Expression,
}

/// An operator of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComparisonOperator {
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
}

/// A call.
#[derive(Clone, Debug)]
pub struct Call {
    /// The function, or an object and its method.
    pub function: Path,
    /// The arguments.
    pub arguments: Arguments,
}

/// Arguments in parentheses.
#[derive(Clone, Debug)]
pub struct Arguments {
    /// The arguments in order.
    pub list: Vec<Argument>,
    /// From `(` to `)`.
    pub span: Span,
}

/// An argument.
#[derive(Clone, Debug)]
pub struct Argument {
    /// The name before `=`, if it is given by name.
    pub name: Option<Name>,
    /// The value.
    pub value: Expression,
}

/// A property or method of a value.
#[derive(Clone, Debug)]
pub struct MemberAccess {
    /// The value.
    pub of: Expression,
    /// The names after it: one, or several joined by dots.
    pub member: Path,
    /// The arguments of a method.
    pub arguments: Option<Arguments>,
}
