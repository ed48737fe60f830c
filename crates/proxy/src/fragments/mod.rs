//! Pages that are assembled from fragments (ESI): what a page's tags ask for, and the body that is made of
//! it.
//!
//! | file | |
//! |---|---|
//! | [`page`] | the page that fragments belong to: how they are requested, and the values of variables |
//! | [`nesting`] | the bounds that pages within pages share |
//! | [`fragment`] | one include: its fragment, or the one in its place |
//! | [`answered`], [`client`], [`pipe`] | a fragment from memory, and one from an exchange of its own, with the pipe from there |
//! | [`assembly`] | the body of a page, with its [`source`] |
//! | [`markup`] | stored pages are parsed once |
//! | [`file_piece`] | files in memory, where a page is compressed |
//! | [`failure`] | why a fragment, or a page, is not assembled |
//!
//! A fragment is a request that its visitor could have made: it has the page's peer and fields, and goes
//! through [`Core::answer_as`](crate::Core) and [`Core::spawn_exchange`](crate::Core) as any other.

mod answered;
mod assembly;
mod client;
mod file_piece;
mod fragment;
mod markup;
mod nesting;
mod page;
mod pipe;
mod source;
#[cfg(test)]
mod tests;

pub(crate) use assembly::Assembly;
pub(crate) use markup::{is_plain, parts_of};
pub(crate) use nesting::Nesting;
pub(crate) use page::{Page, PageRule};
pub(crate) use source::{LinkBody, Source};
