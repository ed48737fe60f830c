"""Bodies that are functions of their paths, so that a client can verify each of them: `/KIND/SIZE/NUMBER`."""

import hashlib
import zlib

# More than the largest body. Each body is a part of these bytes, from an offset that the path determines.
_POOL = hashlib.shake_128(b"sandarac").digest(34 << 20)


class Body:
    """The body of a path."""

    def __init__(self, path):
        self.size = int(path.split("/")[2])
        self._offset = zlib.crc32(path.encode()) % (len(_POOL) - self.size)

    def part(self, begin, end):
        return _POOL[self._offset + begin : self._offset + end]


class Comparison:
    """Compares a body that comes in pieces with that of its path."""

    def __init__(self, path):
        self._body = Body(path)
        self.received = 0
        self.is_right = True

    def take(self, piece):
        end = self.received + len(piece)
        self.is_right = self.is_right and end <= self._body.size and piece == self._body.part(self.received, end)
        self.received = end

    @property
    def is_whole(self):
        return self.received == self._body.size
