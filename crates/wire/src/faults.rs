//! Enums of named faults.

/// Defines an enum of faults. Each has a name, for logs and counters, and a short description without a full
/// stop. `ALL` has every fault; `fault as usize` is its index.
macro_rules! faults {
    ($(#[$doc:meta])* $kind:ident { $($(#[$fault_doc:meta])* $fault:ident = $name:literal $text:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $kind {
            $($(#[$fault_doc])* $fault),*
        }

        impl $kind {
            /// Every fault; `fault as usize` is its index.
            pub const ALL: &'static [$kind] = &[$($kind::$fault),*];

            /// The name, for logs and counters.
            pub const fn name(self) -> &'static str {
                match self { $($kind::$fault => $name),* }
            }

            /// A short description of the fault, without a full stop.
            pub const fn text(self) -> &'static str {
                match self { $($kind::$fault => $text),* }
            }
        }
    };
}

pub(crate) use faults;
