//! Histories of nodes, servers and purges, and the transcripts of single machines.

mod checker;
mod content;
mod histories;
mod memcached;
mod node;
mod real_memcached;
mod transcripts;
mod world;
