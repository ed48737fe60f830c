//! The allocator of the binary and its options: `docs/decisions/0003-allocator.md` has the measurements behind them.

#![allow(unsafe_code)]

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// The options, which jemalloc looks up under this name; `_RJEM_MALLOC_CONF` in the environment overrides them. A
/// thread of jemalloc returns empty pages within a second, so that an idle process does it too. There are few arenas
/// and small thread caches, because free memory in one is not available to others.
// SAFETY: no other item has this name, and jemalloc reads it as its type: a pointer to bytes that end with a zero.
#[unsafe(export_name = "_rjem_malloc_conf")]
static OPTIONS: &[u8; 137] = b"narenas:4,background_thread:true,max_background_threads:1,dirty_decay_ms:1000,muzzy_decay_ms:0,tcache_max:8192,tcache_nslots_small_max:8\0";
