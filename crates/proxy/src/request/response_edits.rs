//! The edits of the response to a request for one target.

use sandarac_message::{FieldsBuf, Name, ResponseHeadBuf, StoredHead, TooLarge, hop, recoding};
use sandarac_policy::{CompressRule, RequestParts, ResponseEdits};

/// The edits that a route makes to responses for one target. They write the same for every client.
#[derive(Clone, Copy)]
pub(crate) struct EditsForTarget<'a> {
    pub(crate) edits: &'a ResponseEdits,
    /// Which bodies are sent in another coding.
    pub(crate) compress: Option<&'a CompressRule>,
    /// Host and target as keyed.
    pub(crate) host: &'a [u8],
    pub(crate) target: &'a [u8],
}

impl EditsForTarget<'_> {
    pub(crate) fn parts(&self) -> RequestParts<'_> {
        RequestParts { host: self.host, target: self.target, ..RequestParts::default() }
    }

    /// Makes the edits of every response, and adds Via with this name.
    pub(crate) fn make(&self, head: &mut ResponseHeadBuf, via: &str) -> Result<(), TooLarge> {
        self.edits.all.apply(&mut head.fields, &self.parts())?;
        hop::add_via(&mut head.fields, head.version, via)
    }

    /// Makes the edits of a response that begins another protocol, which is not stored.
    pub(crate) fn make_switched(&self, head: &mut ResponseHeadBuf) -> Result<(), TooLarge> {
        self.edits.all.apply(&mut head.fields, &self.parts())?;
        self.make_passed(head)
    }

    /// Makes the edits of responses that are not stored.
    pub(crate) fn make_passed(&self, head: &mut ResponseHeadBuf) -> Result<(), TooLarge> {
        self.edits.passed.apply(&mut head.fields, &self.parts())
    }

    /// The head of a response that is stored with `fields`; clients get the edited form.
    pub(crate) fn stored_head(
        &self,
        status: u16,
        reason: &[u8],
        fields: &FieldsBuf,
    ) -> Result<StoredHead, TooLarge> {
        if self.edits.stored.is_empty() && self.compress.is_none() {
            return StoredHead::new(status, reason, fields);
        }
        let mut edited = fields.clone();
        self.edits.stored.apply(&mut edited, &self.parts())?;
        let len = recoding::told_length(edited.view());
        if self.compress.is_some_and(|rule| rule.varies(status, edited.view(), len)) {
            recoding::vary(&mut edited)?;
        }
        StoredHead::edited(status, reason, fields, &edited)
    }

    /// Whether responses are stored without their `Set-Cookie`. The other edits of stored responses do not
    /// affect whether a response is stored: one that the origin marks private stays private.
    pub(crate) fn take_cookies(&self) -> bool {
        self.edits.stored.remove.iter().any(|name| Name::of(name) == Name::SetCookie)
    }
}
