//! The syntax tree. Every node has the span of its text, from its first token to its last.

mod declaration;
mod expression;
mod statement;

pub use declaration::{
    Acl, AclEntry, AclFlag, AclItem, AclMask, Backend, BackendBody, Declaration, DeclarationKind, Director,
    DirectorMember, Import, Probe, Properties, Property, PropertyItem, PropertyValue, Sub, Version,
};
pub use expression::{
    Argument, Arguments, Call, Chain, ChainLink, Comparison, ComparisonOperator, Expression, ExpressionKind,
    LinkOperator, MemberAccess, Name, Path, StringLiteral,
};
pub use statement::{
    Action, Assignment, AssignmentOperator, Block, Branch, ElseBlock, ElseKeyword, Include, IncludedPart,
    New, OldStatement, Return, Statement, StatementKind, Unset,
};

use crate::dialect::{Dialect, OldVersion};

/// A program: the main file, with the files that it includes in the places of their include statements.
#[derive(Clone, Debug)]
pub struct Program {
    /// The dialect of the main file. A file that it includes may have another, see [`Version`].
    pub dialect: Dialect,
    /// The version of an old program; `None` if its names do not show it, and for VCL 4.
    pub old_version: Option<OldVersion>,
    /// The declarations of the main file in its order.
    pub declarations: Vec<Declaration>,
}
