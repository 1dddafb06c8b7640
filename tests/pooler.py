"""A pooler between clients and a PostgreSQL server, small enough to be read: lends server sessions as PgBouncer does.

Per transaction, or per session of a client; which of the idle server sessions is lent can be chosen, since that decides
whether a client sees anything of it.
"""

from __future__ import annotations

import select
import socket
import struct
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

import sqlalchemy as sa

Mode = Literal["newest", "oldest", "own", "session"]
"""newest, oldest: for a transaction, the server session that was given back last, or first. own: for a transaction, the
one that the client had before, as long as it is free. session: as long as the client is there, then DISCARD ALL.
"""
PROTOCOL, SSL, GSS, CANCEL = 196608, 80877103, 80877104, 80877102


class Wire:
    """Messages of PostgreSQL's protocol on a socket."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self._data = b""

    def exactly(self, size: int) -> bytes:
        while len(self._data) < size:
            found = self.socket.recv(65536)
            if not found:
                raise EOFError
            self._data += found
        taken, self._data = self._data[:size], self._data[size:]
        return taken

    def startup(self) -> bytes:
        """The message without a kind that a client begins with."""
        head = self.exactly(4)
        return self.exactly(struct.unpack("!I", head)[0] - 4)

    def message(self) -> tuple[bytes, bytes]:
        """Kind and whole bytes."""
        head = self.exactly(5)
        return head[:1], head + self.exactly(struct.unpack("!I", head[1:])[0] - 4)

    @property
    def waiting(self) -> bool:
        """Whether a message has been read in part or whole already."""
        return bool(self._data)


_KEPT: list[socket.socket] = []
"""Every connection to a server: closed under a thread that still waits at it, a socket's number could be another one's;
and one made while the pooler ends would be collected unclosed."""


@dataclass(eq=False)
class ServerSession:
    """One session of the server. greeting: what it said of itself."""

    wire: Wire
    greeting: bytes


@dataclass
class Pooler:
    """`with Pooler(url, mode) as pooler:` listens on a port of this machine; `pooler.url` leads to the same database.

    url: of a database whose login needs no password. size: the most server sessions.
    """

    server: str
    mode: Mode
    size: int = 20
    lent: int = 0
    _idle: list[ServerSession] = field(default_factory=list)
    _all: list[ServerSession] = field(default_factory=list)
    _clients: list[socket.socket] = field(default_factory=list)
    _ended: bool = False

    def __enter__(self) -> Pooler:
        self._free = threading.Condition()
        self._listening = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._free:
            self._ended = True
        self._listening.close()
        for connection in [*self._clients, *(session.wire.socket for session in self._all)]:
            with suppress(OSError):  # its thread closes it
                connection.shutdown(socket.SHUT_RDWR)

    @property
    def url(self) -> str:
        port = self._listening.getsockname()[1]
        there = sa.make_url(self.server)
        made = sa.URL.create("postgresql", there.username, host="127.0.0.1", port=port, database=there.database)
        return made.render_as_string(hide_password=False)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # an answer is several messages
                self._clients.append(client)
                threading.Thread(target=self._serve, args=(Wire(client),), daemon=True).start()

    def _serve(self, client: Wire) -> None:
        with suppress(EOFError, OSError), client.socket:
            while True:
                asked = client.startup()
                kind = struct.unpack("!I", asked[:4])[0]
                if kind == CANCEL:
                    return
                if kind == PROTOCOL:
                    break
                client.socket.sendall(b"N")
            session = self._take(None)
            client.socket.sendall(session.greeting)
            if self.mode == "session":
                self._lend(client, session, whole=True)
                return
            self._give(session)
            while select.select([client.socket], [], [])[0]:
                session = self._take(session)
                if not self._lend(client, session):
                    return

    def _lend(self, client: Wire, session: ServerSession, *, whole: bool = False) -> bool:
        """One transaction, or (whole) everything, and give it back; False where the client has left."""
        open_, done, given = 0, False, False
        status = b"I"
        try:
            while whole or not done:
                ready = [wire for wire in (client, session.wire) if wire.waiting]
                sockets = [client.socket, session.wire.socket]
                found = ready or [
                    client if one is client.socket else session.wire for one in select.select(sockets, [], [])[0]
                ]
                if session.wire in found:
                    kind, data = session.wire.message()
                    if kind == b"Z":
                        open_, status = open_ - 1, data[5:6]
                        done = open_ == 0 and status == b"I"
                    if done and not whole:
                        # Before the client knows that its transaction has ended: what it asks next finds it free.
                        self._give(session)
                        given = True
                    client.socket.sendall(data)
                else:
                    kind, data = client.message()
                    if kind == b"X":
                        raise EOFError
                    session.wire.socket.sendall(data)
                    open_ += kind in (b"Q", b"S", b"F")
                    done = False
            return True
        except (EOFError, OSError):
            if given:
                return False
            if open_ or status != b"I":
                self._drop(session)
            else:
                if self.mode == "session":
                    self._ask(session, "DISCARD ALL")
                self._give(session)
            return False

    def _take(self, own: ServerSession | None) -> ServerSession:
        with self._free:
            while True:
                if self.mode == "own" and own in self._idle:
                    self._idle.remove(own)
                    return own  # type: ignore[return-value]
                if self._idle and (self.mode != "own" or len(self._all) >= self.size or own is not None):
                    return self._idle.pop(0 if self.mode == "oldest" else -1)
                if self._ended:
                    raise EOFError
                if len(self._all) < self.size:
                    made = self._connect()
                    self._all.append(made)
                    return made
                self._free.wait()

    def _give(self, session: ServerSession) -> None:
        with self._free:
            self.lent += 1
            self._idle.append(session)
            self._free.notify()

    def settle(self) -> None:
        """Wait until every server session that was lent has been given back."""
        with self._free:
            self._free.wait_for(lambda: len(self._idle) == len(self._all), timeout=60)

    def _drop(self, session: ServerSession) -> None:
        with self._free:
            self._all.remove(session)
            session.wire.socket.close()
            self._free.notify()

    def _connect(self) -> ServerSession:
        there = sa.make_url(self.server)
        host: Any = there.query.get("host", there.host)
        port = there.port or 5432
        if str(host).startswith("/"):
            _KEPT.append(connection := socket.socket(socket.AF_UNIX))
            connection.connect(f"{host}/.s.PGSQL.{port}")
        else:
            _KEPT.append(connection := socket.create_connection((host, port)))
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        wire = Wire(connection)
        words = ["user", there.username, "database", there.database, "client_encoding", "UTF8"]
        body = struct.pack("!I", PROTOCOL) + b"".join(f"{word}\0".encode() for word in words) + b"\0"
        connection.sendall(struct.pack("!I", len(body) + 4) + body)
        greeting = b""
        while True:
            kind, data = wire.message()
            if kind == b"E":
                raise OSError(data)
            greeting += data
            if kind == b"Z":
                return ServerSession(wire, greeting)

    def _ask(self, session: ServerSession, statement: str) -> None:
        body = statement.encode() + b"\0"
        session.wire.socket.sendall(b"Q" + struct.pack("!I", len(body) + 4) + body)
        while session.wire.message()[0] != b"Z":
            pass
