//! The request of a client as rules see and change it.

use sandarac_message::{Field, FieldsBuf, Name, RequestHead, RequestHeadBuf};

/// The request of a client: a view of the received head, whose fields are copied at their first change.
pub(crate) struct ClientRequest<'a> {
    received: RequestHead<'a>,
    changed: Option<Box<Changed>>,
}

/// The fields of a request that rules have changed.
pub(crate) struct Changed {
    fields: FieldsBuf,
    /// The fields with those that ask for a part, if these were removed.
    with_part: Option<FieldsBuf>,
}

impl<'a> ClientRequest<'a> {
    pub(crate) fn new(received: RequestHead<'a>) -> ClientRequest<'a> {
        ClientRequest { received, changed: None }
    }

    /// The request as it is now.
    pub(crate) fn view(&self) -> RequestHead<'_> {
        match &self.changed {
            None => self.received,
            Some(changed) => RequestHead { fields: changed.fields.view(), ..self.received },
        }
    }

    /// Gives it other fields.
    pub(crate) fn set_fields(&mut self, fields: FieldsBuf) {
        match &mut self.changed {
            Some(changed) => changed.fields = fields,
            None => self.changed = Some(Box::new(Changed { fields, with_part: None })),
        }
    }

    /// Has it ask for the whole, if it asks for a part.
    pub(crate) fn ask_for_whole(&mut self) {
        let fields = self.view().fields;
        if fields.iter().any(|field| asks_for_part(&field)) {
            let with_part = FieldsBuf::copy_of(fields);
            let mut fields = with_part.clone();
            fields.retain(|field| !asks_for_part(&field));
            self.changed = Some(Box::new(Changed { fields, with_part: Some(with_part) }));
        }
    }

    /// Whether it asked for a part, and asks for the whole now.
    pub(crate) fn is_made_whole(&self) -> bool {
        self.changed.as_ref().is_some_and(|changed| changed.with_part.is_some())
    }

    /// The changes, for a copy of the received head.
    pub(crate) fn into_changes(self) -> Option<Box<Changed>> {
        self.changed
    }
}

impl Changed {
    /// Makes the changes in a copy of the received head. Returns the fields with those that ask for a part,
    /// if these were removed.
    pub(crate) fn make_in(self, head: &mut RequestHeadBuf) -> Option<FieldsBuf> {
        head.fields = self.fields;
        self.with_part
    }
}

/// Whether a field asks for a part of the response.
fn asks_for_part(field: &Field<'_>) -> bool {
    matches!(field.id, Name::Range | Name::IfRange)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandarac_message::{Method, Version};

    fn changed(
        lines: &[(&str, &str)],
        change: impl FnOnce(&mut ClientRequest<'_>),
    ) -> (String, Option<String>) {
        let fields: FieldsBuf = lines.iter().copied().collect();
        let head = RequestHead {
            method: Method::Get,
            method_text: b"GET",
            target: b"/video",
            version: Version::Http11,
            fields: fields.view(),
        };
        let mut request = ClientRequest::new(head);
        change(&mut request);
        let text = |fields: &FieldsBuf| {
            let line = |field: Field<'_>| [field.name, b": ", field.value].concat();
            fields
                .view()
                .iter()
                .map(|field| String::from_utf8(line(field)).unwrap())
                .collect::<Vec<_>>()
                .join(", ")
        };
        let mut copy = RequestHeadBuf::copy_of(&head);
        let seen = text(&FieldsBuf::copy_of(request.view().fields));
        let with_part = request.into_changes().and_then(|changed| changed.make_in(&mut copy));
        assert_eq!(text(&copy.fields), seen, "a copy has the same changes");
        (seen, with_part.as_ref().map(text))
    }

    #[test]
    fn a_request_that_no_rule_changes_is_the_received_one() {
        let (seen, with_part) =
            changed(&[("Host", "a"), ("Accept", "*/*")], |request| request.ask_for_whole());
        assert_eq!((&*seen, with_part), ("Host: a, Accept: */*", None));
    }

    #[test]
    fn a_part_that_was_asked_for_is_known_after_the_request_was_made_whole() {
        let part = [("Range", "bytes=0-9"), ("Host", "a"), ("If-Range", "\"1\"")];
        let (seen, with_part) = changed(&part, |request| request.ask_for_whole());
        assert_eq!(seen, "Host: a");
        assert_eq!(with_part.as_deref(), Some("Range: bytes=0-9, Host: a, If-Range: \"1\""));
    }

    #[test]
    fn changes_follow_each_other() {
        let (seen, with_part) = changed(&[("Host", "a"), ("Client-Cert", ":forged:")], |request| {
            request.set_fields(
                [("Host", "a"), ("Client-Cert", ":real:"), ("Range", "bytes=5-")].into_iter().collect(),
            );
            request.ask_for_whole();
        });
        assert_eq!(seen, "Host: a, Client-Cert: :real:");
        assert_eq!(with_part.as_deref(), Some("Host: a, Client-Cert: :real:, Range: bytes=5-"));
    }
}
