//! Declarations.

use crate::dialect::Dialect;
use crate::source::Span;
use crate::tree::expression::{Expression, Name, Path, StringLiteral};
use crate::tree::statement::{Block, Include};

/// A declaration.
#[derive(Clone, Debug)]
pub struct Declaration {
    /// The kind with its parts.
    pub kind: DeclarationKind,
    /// From the first token to the `;` or `}`.
    pub span: Span,
}

/// The kinds of declarations.
#[derive(Clone, Debug)]
pub enum DeclarationKind {
    /// `vcl 4.1;`
    Version(Version),
    /// `import MODULE;`
    Import(Import),
    /// `include "…";` with the declarations of the file.
    Include(Include<Declaration>),
    /// `backend NAME { … }` or `backend NAME none;`
    Backend(Backend),
    /// `probe NAME { … }`
    Probe(Probe),
    /// `acl NAME { … }`
    Acl(Acl),
    /// `sub NAME { … }`
    Sub(Sub),
    /// `unused SYMBOL;`
    Unused(Path),
    /// `director NAME KIND { … }`, of VCL 2 and 3. In VCL 4 it was reported.
    Director(Director),
    /// A block of C.
    InlineC,
    /// Text that could not be read. It was reported.
    Invalid,
}

/// The version of the syntax. It holds for the file and for those that it includes and that have none.
#[derive(Clone, Copy, Debug)]
pub struct Version {
    /// The number as written.
    pub number: Span,
    /// The dialect; the highest known one, if the number is none.
    pub dialect: Dialect,
}

/// The import of a module.
#[derive(Clone, Debug)]
pub struct Import {
    /// The module.
    pub module: Name,
    /// The name after `as`.
    pub alias: Option<Name>,
    /// The path after `from`.
    pub from: Option<StringLiteral>,
}

/// A backend.
#[derive(Clone, Debug)]
pub struct Backend {
    /// The name.
    pub name: Name,
    /// The properties, or none at all.
    pub body: BackendBody,
}

/// The body of a backend.
#[derive(Clone, Debug)]
pub enum BackendBody {
    /// `none`: a backend that fails every request.
    None,
    /// The properties in braces.
    Properties(Properties),
}

/// A health probe.
#[derive(Clone, Debug)]
pub struct Probe {
    /// The name.
    pub name: Name,
    /// The properties.
    pub properties: Properties,
}

/// Properties in braces.
#[derive(Clone, Debug)]
pub struct Properties {
    /// The properties in order.
    pub items: Vec<PropertyItem>,
    /// From `{` to `}`.
    pub span: Span,
}

/// An item of a block of properties.
#[derive(Clone, Debug)]
pub enum PropertyItem {
    /// `.NAME = VALUE;`
    Property(Property),
    /// `include "…";` with the properties of the file.
    Include(Include<PropertyItem>),
    /// An address, within the `.list` of a director of kind `dns`.
    Address(AclEntry),
}

/// A property of a backend, probe or director.
#[derive(Clone, Debug)]
pub struct Property {
    /// The name, without its dot.
    pub name: Name,
    /// The value.
    pub value: PropertyValue,
    /// From the `.` to the `;` or `}`.
    pub span: Span,
}

/// The value of a property.
#[derive(Clone, Debug)]
pub enum PropertyValue {
    /// A constant: a string, number, duration, size, BLOB, boolean, or the name of a symbol.
    Constant(Expression),
    /// Strings side by side, as in `.request`; at least two.
    Strings(Vec<StringLiteral>),
    /// Properties in braces: a probe, or in VCL 2 and 3 a backend or a list.
    Block(Properties),
    /// A value that could not be read. It was reported.
    Invalid,
}

/// An access list.
#[derive(Clone, Debug)]
pub struct Acl {
    /// The name.
    pub name: Name,
    /// The flags in order.
    pub flags: Vec<AclFlag>,
    /// The entries.
    pub items: Vec<AclItem>,
    /// From `{` to `}`.
    pub body: Span,
}

/// A flag, such as `+log` or `-pedantic`.
#[derive(Clone, Debug)]
pub struct AclFlag {
    /// Whether it is set (`+`) or cleared (`-`).
    pub is_set: bool,
    /// The name.
    pub name: Name,
    /// From the sign to the name.
    pub span: Span,
}

/// An item of an access list.
#[derive(Clone, Debug)]
pub enum AclItem {
    /// An entry.
    Entry(AclEntry),
    /// `include "…";` with the entries of the file.
    Include(Include<AclItem>),
}

/// An entry of an access list.
#[derive(Clone, Debug)]
pub struct AclEntry {
    /// Whether a match refuses (`!`).
    pub is_negated: bool,
    /// Whether it is ignored if its name has no address (in parentheses).
    pub is_optional: bool,
    /// The address or name, which may contain the mask in VCL 4.
    pub address: StringLiteral,
    /// The mask after `/`.
    pub mask: Option<AclMask>,
    /// From the first token to the `;`.
    pub span: Span,
}

/// A mask: the number of leading bits that are compared.
#[derive(Clone, Copy, Debug)]
pub struct AclMask {
    /// The number of bits.
    pub bits: i64,
    /// The number as written.
    pub span: Span,
}

/// A sub.
#[derive(Clone, Debug)]
pub struct Sub {
    /// The name.
    pub name: Name,
    /// The statements.
    pub block: Block,
}

/// A director of VCL 2 and 3.
#[derive(Clone, Debug)]
pub struct Director {
    /// The name.
    pub name: Name,
    /// The kind: `random`, `round-robin`, `fallback`, `hash`, `client` or `dns`.
    pub kind: Name,
    /// The properties of the director itself.
    pub properties: Vec<Property>,
    /// The members in order.
    pub members: Vec<DirectorMember>,
    /// From `{` to `}`.
    pub body: Span,
}

/// A member of a director.
#[derive(Clone, Debug)]
pub struct DirectorMember {
    /// The properties: `.backend`, as a name or as a block, and `.weight`.
    pub properties: Properties,
}
