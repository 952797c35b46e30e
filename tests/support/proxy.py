"""A network that breaks."""

import contextlib
import socket
import threading
import time
from urllib.parse import urlsplit

from basics import REPLY_S
from servers import with_port


class Proxy:
    """A TCP relay before a server that a test can break in the ways in which networks do."""

    def __init__(self, url):
        parts = urlsplit(url)
        self.target = (parts.hostname or "127.0.0.1", parts.port or 5432)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.url = with_port(url, self.port)
        self.gate = threading.Lock()
        self.pairs = set()
        self.lost = {}  # pair: what is still passed on of its server's reply, as .after
        self.refuse = False  # new connections are closed at once
        self.stalled = threading.Event()  # nothing is passed on, in either direction
        self.trigger = None  # bytes of the client that set off what .lose says, once
        self.lose = None  # "reply": pass them on, lose the reply; "request": lose them
        self.after = 0  # this many bytes of the reply get through; negative: all but as many
        self.instead = b""  # what the client gets instead of the rest of the reply
        self.triggered = threading.Event()
        self.until = None  # an Event: what is lost looks as if it were under way until then
        self.pieces = None  # pass replies on in pieces of this many bytes
        self.rewrite = None  # bytes of the client, and what is passed on instead of them
        self.accepted = 0  # connections so far, the refused ones too
        self.closing = False
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            self.accepted += 1
            try:
                assert not self.refuse
                server = socket.create_connection(self.target, timeout=REPLY_S)
            except (AssertionError, OSError):
                client.close()
                continue
            server.settimeout(None)
            for end in (client, server):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            pair = (client, server)
            with self.gate:
                self.pairs.add(pair)
            threading.Thread(target=self._relay, args=(pair, client, server), daemon=True).start()
            threading.Thread(target=self._relay, args=(pair, server, client), daemon=True).start()

    def _relay(self, pair, source, sink):
        from_client = source is pair[0]
        try:
            while data := source.recv(65536):
                while self.stalled.is_set() and not self.closing:
                    time.sleep(0.01)
                if from_client and self.rewrite:
                    data = data.replace(*self.rewrite)
                if from_client and self.trigger and self.trigger in data:
                    self.trigger = None  # once
                    if self.lose == "reply":
                        self.lost[pair] = self.after
                        sink.sendall(data)
                        self.triggered.wait(5 if self.after else 0.3)  # the server does what it was asked
                    self.triggered.set()
                    break
                if not from_client and pair in self.lost:
                    sink.sendall(data[: self.lost[pair]] + self.instead)
                    self.triggered.set()
                    break
                size = self.pieces if self.pieces and not from_client else len(data)
                for at in range(0, len(data), size):
                    sink.sendall(data[at : at + size])
        except OSError:
            pass
        if self.until and self.triggered.is_set():
            self.until.wait(60)
        self._close(pair)

    def _close(self, pair):
        with self.gate:
            self.pairs.discard(pair)
        for end in pair:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def cut(self):
        """Ends all connections."""
        with self.gate:
            pairs = list(self.pairs)
        for pair in pairs:
            self._close(pair)

    def arm(self, trigger, lose, after=0, until=None):
        """At the next TRIGGER from a client: lose the "reply" or the "request", and that connection. AFTER: this many bytes
        of the reply get through before (negative: all but as many). UNTIL: the client notices only after this Event."""
        self.trigger, self.lose, self.after, self.until = trigger, lose, after, until
        self.triggered.clear()

    def close(self):
        self.closing = True
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.cut()
