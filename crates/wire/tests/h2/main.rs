//! HTTP/2 as wire transcripts.

mod frames;
mod heads;
mod hpack;
