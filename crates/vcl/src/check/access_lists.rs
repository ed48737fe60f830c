//! Access lists.

use std::net::IpAddr;

use crate::check::checker::Checker;
use crate::check::rules;
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::tree::{Acl, AclEntry, AclItem};

impl Checker<'_> {
    pub(super) fn acl(&mut self, acl: &Acl) {
        let is_pedantic = !acl.flags.iter().any(|flag| &*flag.name.text == "pedantic" && !flag.is_set);
        self.acl_items(&acl.items, is_pedantic);
    }

    fn acl_items(&mut self, items: &[AclItem], is_pedantic: bool) {
        for item in items {
            match item {
                AclItem::Entry(entry) => self.acl_entry(entry, is_pedantic),
                AclItem::Include(include) => {
                    include.parts.iter().for_each(|part| self.acl_items(&part.items, is_pedantic));
                }
            }
        }
    }

    fn acl_entry(&mut self, entry: &AclEntry, is_pedantic: bool) {
        let text = self.text(entry.address.content);
        let span = entry.address.content;
        // The mask may stand within the quotes.
        let (text, inner_bits) = match text.split_once('/') {
            Some((address, bits)) => (address.to_owned(), Some(bits.to_owned())),
            None => (text, None),
        };
        let looks_numeric =
            text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') && !text.is_empty();
        let address = match text.parse::<IpAddr>() {
            Ok(address) => Some(address),
            Err(_) if looks_numeric || text.is_empty() || !is_host_name(&text) => {
                let message = format!("`{text}` is no address");
                self.report(Diagnostic::new(&rules::ACL_ENTRY, span, message).note(
                    "an address is like \"192.0.2.1\" or \"2001:db8::1\", a network like \"192.0.2.0\"/24",
                ));
                return;
            }
            Err(_) => None,
        };
        let inner = inner_bits.map(|bits| (bits.trim().parse().unwrap_or(-1), span));
        let Some((bits, mask_span)) = entry.mask.map(|mask| (mask.bits, mask.span)).or(inner) else { return };
        let most = if matches!(address, Some(IpAddr::V4(_))) { 32 } else { 128 };
        if !(0..=most).contains(&bits) {
            let message = format!("the mask is a number from 0 to {most}, not {bits}");
            self.report(Diagnostic::new(&rules::ACL_ENTRY, mask_span, message));
            return;
        }
        if let (Some(address), true) = (address, is_pedantic) {
            self.host_bits(address, bits as u32, span);
        }
    }

    /// Reports an address with bits beyond its mask.
    fn host_bits(&mut self, address: IpAddr, bits: u32, span: Span) {
        let network = match address {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
                IpAddr::from((u32::from(address) & mask).to_be_bytes())
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
                IpAddr::from((u128::from(address) & mask).to_be_bytes())
            }
        };
        if network != address {
            let message = format!("`{address}` has bits beyond its mask of {bits}");
            self.report(
                Diagnostic::new(&rules::ACL_ENTRY, span, message)
                    .note("the flag `-pedantic` of the access list allows it")
                    .mend(format!("write `\"{network}\"/{bits}`"), span, network.to_string()),
            );
        }
    }
}

/// Whether a text may be the name of a host.
pub(super) fn is_host_name(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
}
