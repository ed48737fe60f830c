//! Classifiers, as settings.

mod part;
mod pattern;
mod settings;
mod table;
mod template;

pub(crate) use settings::ClassSettings;
pub use settings::classifier;
pub use table::{TABLE_BYTES, TableError, read_class_table};
