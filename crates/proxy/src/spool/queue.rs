//! A body that waits for a slow client: first in, first out.

use super::block::{Block, FOR_ONE_APPEND};
use super::space::{SpoolMemory, SpoolSpace};
use super::temporary::{TemporaryFile, write};
#[cfg(test)]
use super::tests::off_core;
use crate::shared::Shared;
use sandarac_message::{FileRange, OpenFile, Piece};
#[cfg(not(test))]
use sandarac_net::off_core;
use sandarac_net::{Holder, Moment, Timer};
use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

/// Bytes of a body that wait in memory before the rest goes to a file: most pages are shorter.
const KEPT: usize = 256 << 10;

/// The longest piece that is handed out. The rest stays in the spool, so that the client's progress is seen.
const MAX_PIECE: usize = 256 << 10;

/// A client that takes so many bytes in a millisecond is nearly as fast as a file: the origin waits for it instead. This is
/// half of what a gigabit line carries.
const FAST: u64 = 64 << 10;

/// How long the pace of a client is measured before it counts.
const MEASURED: Duration = Duration::from_millis(10);

/// A body, or a part of one, that waits.
pub(crate) struct Spool {
    space: Arc<SpoolSpace>,
    /// The holder whose body it is.
    holder: Holder,
    directory: PathBuf,
    /// The most bytes of all files.
    disk: u64,
    /// The most bytes that wait here.
    limit: u64,
    /// Whether it is gathered before anything is taken.
    gathers: bool,
    /// The pieces that are ready to be sent, in order.
    pieces: VecDeque<Piece>,
    /// Bytes of them in memory.
    kept: usize,
    /// The block that follows them, on its way to the file.
    writing: Option<Writing>,
    /// The blocks after that. All but the last are full.
    blocks: VecDeque<Block>,
    file: Option<TemporaryFile>,
    /// Whether a file could not be written, so that none is used any more.
    has_failed: bool,
    /// Whether nothing follows.
    is_closed: bool,
    /// Whether bytes were lost with a thread.
    is_lost: bool,
    waiting: u64,
    began: Moment,
    taken: u64,
    /// Looks again at the pace of the client, or for memory.
    timer: Timer,
}

type Writing = Pin<Box<dyn Future<Output = Option<(Block, io::Result<Arc<OpenFile>>)>>>>;

impl Spool {
    /// An empty spool for a response, at most `limit` bytes of which wait for the client.
    pub(crate) fn of_response(shared: &Shared, holder: &Holder, limit: u64) -> Spool {
        Spool::configured(shared, holder, limit, false)
    }

    /// An empty spool for a request body that is gathered up to `limit` bytes.
    pub(crate) fn of_request(shared: &Shared, holder: &Holder, limit: u64) -> Spool {
        Spool::configured(shared, holder, limit, true)
    }

    fn configured(shared: &Shared, holder: &Holder, limit: u64, gathers: bool) -> Spool {
        let site = shared.site();
        let settings = &site.config.spool;
        Spool::new((&shared.spool, holder), settings.directory.clone(), settings.disk, limit, gathers)
    }

    /// An empty spool with files in `directory`, which may have `disk` bytes together.
    pub(super) fn new(
        (space, holder): (&Arc<SpoolSpace>, &Holder),
        directory: PathBuf,
        disk: u64,
        limit: u64,
        gathers: bool,
    ) -> Spool {
        Spool {
            space: space.clone(),
            holder: holder.clone(),
            directory,
            disk,
            limit,
            gathers,
            pieces: VecDeque::new(),
            kept: 0,
            writing: None,
            blocks: VecDeque::new(),
            file: None,
            has_failed: disk == 0,
            is_closed: false,
            is_lost: false,
            waiting: 0,
            began: Moment::now(),
            taken: 0,
            timer: Timer::new(),
        }
    }

    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// Whether bytes were lost. The body has to break off behind what came before them; nothing else is handed out.
    pub(crate) fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// Ready with the memory for the next [`Spool::append`] when there is room for it. While this is pending, the source has to
    /// wait for the client.
    pub(crate) fn poll_reserve(&mut self, cx: &mut Context<'_>) -> Poll<SpoolMemory> {
        ready!(self.poll_placed(cx));
        if self.waiting >= self.limit {
            return Poll::Pending;
        }
        // Responses of one connection leave room for those of others.
        let has_share =
            !self.gathers && self.holder.bytes() > self.space.share_of_connection(2 * FOR_ONE_APPEND);
        let memory = if has_share { None } else { self.space.take(&self.holder, FOR_ONE_APPEND) };
        match memory {
            Some(memory) => Poll::Ready(memory),
            None => {
                self.look_again(cx);
                Poll::Pending
            }
        }
    }

    /// Notes that nothing follows, and puts what is left in its place. Pending while a thread writes it.
    pub(crate) fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.is_closed = true;
        self.poll_placed(cx)
    }

    /// Ready when no block waits for its place, in memory or in the file.
    fn poll_placed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.poll_written(cx);
        while self.blocks.front().is_some_and(|block| self.is_ripe(block)) {
            let uses_file = self.file.is_some() || self.kept >= KEPT || !self.may_keep();
            if self.writing.is_some() {
                return Poll::Pending;
            } else if !uses_file || (self.has_failed && (self.gathers || self.kept < KEPT)) {
                self.keep_block();
            } else if self.has_failed || !self.gathers && self.file.is_none() && self.is_fast(cx) {
                return Poll::Pending;
            } else {
                self.write_block(cx);
            }
        }
        Poll::Ready(())
    }

    /// Whether a block is given its place. Where memory is scarce, that does not wait until it is full: many slow uploads, and
    /// the ends of many responses, would take all of it.
    fn is_ripe(&self, block: &Block) -> bool {
        block.is_full() || self.is_closed || !self.has_failed && block.is_begun() && !self.may_keep()
    }

    /// Adds bytes, at most [`MAX_APPENDED`](super::MAX_APPENDED) of them, with the memory reserved for them.
    pub(crate) fn append(&mut self, mut memory: SpoolMemory, mut data: &[u8]) {
        self.waiting += data.len() as u64;
        while !data.is_empty() && !self.is_lost {
            if self.blocks.back().is_none_or(Block::is_full) {
                self.blocks.push_back(Block::new(&mut memory));
            }
            let last = self.blocks.back_mut().expect("there is one");
            let taken = last.append(data, &mut memory);
            data = &data[taken..];
        }
    }

    /// The next piece, as soon as it can be sent; `None` if nothing waits.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Piece>> {
        self.poll_written(cx);
        if self.pieces.is_empty() {
            if self.writing.is_some() {
                return Poll::Pending;
            }
            // All of the file has been taken. The next one is another: the system may still have to send this
            // one's pages.
            self.file = None;
            self.keep_block();
        }
        let Some(front) = self.pieces.front_mut() else { return Poll::Ready(None) };
        let piece = match front.len() > MAX_PIECE {
            true => {
                let piece = front.slice(0..MAX_PIECE);
                front.advance(MAX_PIECE);
                piece
            }
            false => self.pieces.pop_front().expect("it has a front"),
        };
        if matches!(piece, Piece::Bytes(_)) {
            self.kept -= piece.len();
        }
        self.waiting -= piece.len() as u64;
        self.taken += piece.len() as u64;
        Poll::Ready(Some(piece))
    }

    /// Whether a thread writes some of it.
    pub(crate) fn is_being_written(&self) -> bool {
        self.writing.is_some()
    }

    /// Ready when all of it is in [`Spool::pieces`].
    pub(crate) fn poll_pieces(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.poll_written(cx);
        if self.writing.is_some() {
            return Poll::Pending;
        }
        while !self.blocks.is_empty() {
            self.keep_block();
        }
        Poll::Ready(())
    }

    /// The pieces that wait, in order.
    pub(crate) fn pieces(&self) -> &VecDeque<Piece> {
        &self.pieces
    }

    /// Whether more may stay in memory, for all and for its connection.
    fn may_keep(&self) -> bool {
        self.space.may_keep() && self.holder.bytes() <= self.space.share_of_connection(2 * FOR_ONE_APPEND) / 2
    }

    /// Makes the next block a piece in memory.
    fn keep_block(&mut self) {
        if let Some(block) = self.blocks.pop_front() {
            self.kept += block.len();
            self.pieces.push_back(block.into_bytes().into());
        }
    }

    /// Whether the client is so fast that a file would slow it down.
    fn is_fast(&mut self, cx: &mut Context<'_>) -> bool {
        let elapsed = Moment::now().since(self.began);
        let is_fast = elapsed < MEASURED || u128::from(self.taken) >= elapsed.as_millis() * u128::from(FAST);
        if is_fast {
            self.look_again(cx);
        }
        is_fast
    }

    /// Wakes the task of `cx` in a moment, even if the client takes nothing.
    fn look_again(&mut self, cx: &mut Context<'_>) {
        while !self.timer.is_set() || self.timer.poll(cx).is_ready() {
            self.timer.set(MEASURED);
        }
    }

    /// Begins to write the next block to the file.
    fn write_block(&mut self, cx: &mut Context<'_>) {
        let Some(block) = self.blocks.pop_front() else { return };
        let made = self.file.take().or_else(|| self.space.disk_of_none(&self.holder).map(TemporaryFile::new));
        let Some(made) = made else {
            self.failed(block, "too many files are open (limit on open files)".to_owned());
            return;
        };
        let file = self.file.insert(made);
        let at = file.disk.bytes();
        if let Err(why) = file.disk.grow(block.len() as u64, self.disk) {
            self.failed(block, why.to_owned());
            return;
        }
        let (file, directory) = (file.file().cloned(), self.directory.clone());
        self.writing = Some(Box::pin(off_core(move || {
            let written = write(file, &directory, &block, at);
            (block, written)
        })));
        self.poll_written(cx);
    }

    /// Takes notice of a block that has been written.
    fn poll_written(&mut self, cx: &mut Context<'_>) {
        let Some(writing) = &mut self.writing else { return };
        let Poll::Ready(written) = writing.as_mut().poll(cx) else { return };
        self.writing = None;
        match written {
            Some((block, Ok(file))) => self.written(block, file),
            Some((block, Err(error))) => self.failed(block, error.to_string()),
            // The thread panicked, or the core ends. The blocks behind the lost one would leave a hole.
            None => {
                self.is_lost = true;
                self.blocks.clear();
            }
        }
    }

    /// Keeps a block in memory that could not be written, and uses no file any more.
    fn failed(&mut self, block: Block, why: String) {
        self.has_failed = true;
        self.space.failed(format!("{}: {why}", self.directory.display()));
        self.kept += block.len();
        self.pieces.push_back(block.into_bytes().into());
    }

    fn written(&mut self, block: Block, file: Arc<OpenFile>) {
        let Some(own) = &mut self.file else {
            return self.failed(block, "the file is gone".to_owned());
        };
        own.opened(file.clone());
        let start = own.disk.bytes() - block.len() as u64;
        match self.pieces.back_mut() {
            // A file has nothing but the pieces in their order, so the range goes on.
            Some(Piece::File(range)) if range.start + range.len as u64 == start => range.len += block.len(),
            _ => self.pieces.push_back(Piece::File(FileRange {
                file,
                start,
                len: block.len(),
                may_wait: true,
            })),
        }
    }
}
