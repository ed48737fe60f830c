//! Statements.

use crate::source::{FileId, Span};
use crate::tree::expression::{Arguments, Call, Expression, Name, Path, StringLiteral};

/// Statements in braces.
#[derive(Clone, Debug)]
pub struct Block {
    /// The statements in order.
    pub statements: Vec<Statement>,
    /// The `{`; empty if it is missing.
    pub open: Span,
    /// The `}`; empty if it is missing.
    pub close: Span,
}

/// A statement.
#[derive(Clone, Debug)]
pub struct Statement {
    /// The kind with its parts.
    pub kind: StatementKind,
    /// From the first token to the `;` or `}`.
    pub span: Span,
}

/// The kinds of statements.
#[derive(Clone, Debug)]
pub enum StatementKind {
    /// `set VARIABLE = VALUE;`
    Set(Assignment),
    /// `unset VARIABLE;`, in VCL 2 and 3 also `remove VARIABLE;`
    Unset(Unset),
    /// `call SUB;`
    Call(Name),
    /// `if (…) { … } elseif (…) { … } else { … }`
    If {
        /// The branches with conditions; at least one.
        branches: Vec<Branch>,
        /// The last branch, without a condition.
        otherwise: Option<ElseBlock>,
    },
    /// `return (ACTION);` or `return;`
    Return(Return),
    /// `new OBJECT = MODULE.TYPE(…);`
    New(New),
    /// A call of a function as a statement, such as `std.log("…");`.
    Function(Call),
    /// `unused SYMBOL;`
    Unused(Path),
    /// Statements in braces of their own.
    Block(Block),
    /// `include "…";` with the statements of the file.
    Include(Include<Statement>),
    /// A block of C.
    InlineC,
    /// A statement that only VCL 2 and 3 have.
    Old(OldStatement),
    /// A statement that could not be read. It was reported.
    Invalid,
}

/// An assignment.
#[derive(Clone, Debug)]
pub struct Assignment {
    /// The variable.
    pub target: Path,
    /// The operator.
    pub operator: AssignmentOperator,
    /// The operator as written.
    pub operator_span: Span,
    /// The value.
    pub value: Expression,
}

/// An operator of an assignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AssignmentOperator {
    /// `=`
    Assign,
    /// `+=`
    Add,
    /// `-=`
    Subtract,
    /// `*=`
    Multiply,
    /// `/=`
    Divide,
}

/// The removal of a variable.
#[derive(Clone, Debug)]
pub struct Unset {
    /// The keyword: `unset`, or `remove` in VCL 2 and 3.
    pub keyword: Span,
    /// Whether the keyword is `remove`.
    pub is_remove: bool,
    /// The variable.
    pub target: Path,
}

/// A branch of a condition.
#[derive(Clone, Debug)]
pub struct Branch {
    /// The keyword as written: `if`, `elseif`, `else if` and so on.
    pub keyword: Span,
    /// The spelling; `None` for the first branch.
    pub else_keyword: Option<ElseKeyword>,
    /// The condition, without its parentheses.
    pub condition: Expression,
    /// The statements.
    pub block: Block,
}

/// The spellings of "else if".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElseKeyword {
    /// `else if`
    ElseIf,
    /// `elseif`
    Elseif,
    /// `elsif`
    Elsif,
    /// `elif`
    Elif,
}

/// The branch without a condition.
#[derive(Clone, Debug)]
pub struct ElseBlock {
    /// The `else`.
    pub keyword: Span,
    /// The statements.
    pub block: Block,
}

/// The end of a sub.
#[derive(Clone, Debug)]
pub struct Return {
    /// The `return`.
    pub keyword: Span,
    /// The action; `None` for `return;`, which only ends the sub.
    pub action: Option<Action>,
}

/// An action, such as `pass`, `synth(404, "…")` or `vcl(LABEL)`.
#[derive(Clone, Debug)]
pub struct Action {
    /// The name.
    pub name: Name,
    /// The arguments.
    pub arguments: Option<Arguments>,
}

/// The creation of an object of a module.
#[derive(Clone, Debug)]
pub struct New {
    /// The object.
    pub name: Name,
    /// The type, as `MODULE.TYPE`.
    pub constructor: Path,
    /// The arguments.
    pub arguments: Arguments,
}

/// An include statement and what the files hold.
#[derive(Clone, Debug)]
pub struct Include<T> {
    /// The path or pattern.
    pub path: StringLiteral,
    /// The `+glob`, if the path is a pattern.
    pub glob: Option<Span>,
    /// The files in order; none if they could not be read, which was reported.
    pub parts: Vec<IncludedPart<T>>,
}

/// An included file.
#[derive(Clone, Debug)]
pub struct IncludedPart<T> {
    /// The file.
    pub file: FileId,
    /// Its items in order.
    pub items: Vec<T>,
}

/// A statement that only VCL 2 and 3 have. In VCL 4 it was reported.
#[derive(Clone, Debug)]
pub enum OldStatement {
    /// `error;`, `error STATUS;` or `error STATUS TEXT;`
    Error {
        /// The status.
        status: Option<Expression>,
        /// The text.
        reason: Option<Expression>,
    },
    /// `synthetic TEXT;` without parentheses.
    Synthetic(Expression),
    /// `log TEXT;`
    Log(Expression),
    /// `panic TEXT;`
    Panic(Expression),
    /// `purge;`
    Purge,
    /// `esi;`
    Esi,
    /// `rollback;`
    Rollback,
    /// An action as a statement, such as `pass;`.
    Action(Name),
}
