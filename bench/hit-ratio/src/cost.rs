//! The bytes that an object is charged in the policies other than Sandarac's.

/// Bytes of a segment of a long body in the store, and what each takes beside its content.
const SEGMENT: u64 = 64 << 10;
const PER_SEGMENT: u64 = 112;

/// Bytes beside the body: head, key, text of host and path, index. What the store takes for the objects of
/// [`Ours`](crate::ours::Ours); a test compares them.
const PER_OBJECT: u64 = 640;

/// The bytes charged for an object with a body of `size` bytes. They include the allocator's rounding, because
/// the store is charged for it too.
pub(crate) fn cost(size: u32) -> u64 {
    let size = u64::from(size);
    size / SEGMENT * (SEGMENT + PER_SEGMENT) + rounded(size % SEGMENT) + PER_OBJECT
}

/// The next size class, four to a doubling as in jemalloc.
fn rounded(size: u64) -> u64 {
    if size <= 128 { size.next_multiple_of(16) } else { size.next_multiple_of(1 << ((size - 1).ilog2() - 2)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::Cache;
    use crate::ours::Ours;
    use crate::random::Random;
    use crate::traces::Request;

    #[test]
    fn objects_are_charged_what_they_take_in_the_store() {
        let mut ours = Ours::new(1 << 30, false);
        let mut random = Random::new(1);
        let mut charged = 0;
        for key in 0..5000 {
            let size = (8192.0 * random.normal().exp()) as u32 + if key % 500 == 0 { 5 << 20 } else { 0 };
            charged += cost(size);
            ours.request(0, &Request { at: 0, key, size, lifetime: u32::MAX });
        }
        let taken = ours.bytes();
        let part = charged as f64 / taken as f64;
        assert!((0.99..1.01).contains(&part), "charged {charged}, taken {taken}");
    }
}
