//! Recodings of a stored object: its body in other content codings, each an object of its own beside the original.

use std::sync::Arc;

use bytes::Bytes;
use sandarac_message::StoredHead;
use sandarac_message::codings::Coding;
use sandarac_message::recoding::Uncompressed;
use sandarac_message::vary::VaryKey;

use crate::Object;
use crate::body::Content;
use crate::object::{Extras, Parts, Recoding, Recodings};
use crate::shard::Shard;
use crate::store::Store;
use crate::whole_body::Whole;

impl Object {
    /// The parts of a recoding. It has no text: nobody looks for it by its host and path.
    fn recoded(&self, head: StoredHead) -> Parts {
        let (vary, extras) = (VaryKey::default(), Extras::default());
        Parts { head, vary, extras, host_len: 0, path_len: 0, ..self.parts() }
    }
}

impl Store {
    /// Keeps the body of an object in `coding`, or in none, beside the object. The result is not kept if the object has left
    /// the index, has such a body, or there is no room; then it is for one client.
    pub fn keep_recoding(
        &self,
        object: &Arc<Object>,
        coding: Option<Coding>,
        head: StoredHead,
        body: Bytes,
    ) -> Arc<Object> {
        let parts = object.recoded(head);
        let charged = self.reserve(parts.base_bytes() + Whole::one_bytes(body.len()));
        // The first clone allocates the reference count: do it now, not on a hit.
        drop(body.clone());
        let content = Content::Whole(Whole::One(body));
        let recoded = Arc::new(parts.build(content, charged.then(|| self.budget.clone())));
        if charged {
            self.keep_in_place(object, coding, Recoding::Made(recoded.clone()));
        }
        recoded
    }

    /// Keeps the recodings of `before` beside `after`, which is the same response under another head, each under the head
    /// that `head` makes.
    pub fn carry_recodings(
        &self,
        before: &Object,
        after: &Arc<Object>,
        head: impl Fn(Option<Coding>) -> Option<StoredHead>,
    ) {
        for coding in Coding::ALL.into_iter().map(Some).chain([None]) {
            if let Some(Recoding::Made(recoded)) = before.recoding(coding)
                && let Content::Whole(Whole::One(body)) = &recoded.content
                && let Some(head) = head(coding)
            {
                self.keep_recoding(after, coding, head, body.clone());
            }
        }
    }

    /// Remembers that an object has no body in `coding`, or in none.
    pub fn keep_useless(&self, object: &Arc<Object>, coding: Option<Coding>, reason: Uncompressed) {
        self.keep_in_place(object, coding, Recoding::Useless(reason));
    }

    /// Remembers that the body of an object in `coding`, or in none, is too long to be kept.
    pub fn keep_too_long(&self, object: &Arc<Object>, coding: Option<Coding>) {
        self.keep_in_place(object, coding, Recoding::TooLong);
    }

    fn keep_in_place(&self, object: &Arc<Object>, coding: Option<Coding>, recoding: Recoding) {
        let reserved = object.recodings_bytes();
        if !self.reserve(reserved) {
            return;
        }
        let mut shard = self.lock(object.key());
        let slot = shard.slot_of(object);
        let taken = slot.map_or(0, |slot| shard.keep_recoding(slot, coding, recoding));
        drop(shard);
        self.release(reserved - taken);
    }

    /// Keeps `block`, the head of a recoding of an object as a header block of HTTP/2, beside the head. Does nothing if it has
    /// one, or the object is not in the index, or if there is no room.
    pub fn keep_block_of_recoding(&self, object: &Arc<Object>, recoded: &Object, block: Box<[u8]>) {
        let reserved = recoded.block_bytes(&block);
        if !recoded.is_charged() || !self.reserve(reserved) {
            return;
        }
        let mut shard = self.lock(object.key());
        let is_of_object = |recodings: &Recodings| {
            recodings.made().any(|made| std::ptr::eq(&raw const **made, &raw const *recoded))
        };
        let recodings = object.extras().and_then(|extras| extras.recodings.get());
        let slot = shard.slot_of(object).filter(|_| recodings.is_some_and(is_of_object));
        let taken = slot.map_or(0, |slot| shard.keep_block_of(slot, recoded, block));
        drop(shard);
        self.release(reserved - taken);
    }
}

impl Shard {
    /// Puts a recoding into its place, and returns the bytes that the places take. The recoding is charged already.
    fn keep_recoding(&mut self, slot: u32, coding: Option<Coding>, recoding: Recoding) -> usize {
        let Some(object) = self.object(slot).cloned() else { return 0 };
        let places = object.recodings_bytes();
        let weight = match &recoding {
            Recoding::Made(recoded) => recoded.weight(),
            Recoding::TooLong | Recoding::Useless(_) => 0,
        };
        let kept = object.set_recoding(coding, recoding);
        self.add_bytes(&object, places + if kept { weight } else { 0 });
        places
    }
}
