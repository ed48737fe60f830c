//! HTTP/2 as wire transcripts.

mod connections;
mod floods;
mod frames;
mod heads;
mod hpack;
mod second_opinion;
