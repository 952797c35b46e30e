"""HTTP as bytes on a socket: a test sends what it wants, right or wrong, and reads reply after reply."""

import json
import select
import socket
import time
from dataclasses import dataclass
from pathlib import Path

from basics import REPLY_S
from contract import strict_json


@dataclass
class Reply:
    """One HTTP reply."""

    status: int
    headers: list
    body: bytes
    seconds: float = 0.0

    def header(self, name):
        values = [value for key, value in self.headers if key.lower() == name.lower()]
        assert len(values) <= 1, f"{name} given {len(values)} times: {values}"
        return values[0] if values else None

    @property
    def media_type(self):
        return (self.header("Content-Type") or "").split(";")[0].strip().lower()

    @property
    def text(self):
        return self.body.decode("utf-8")

    @property
    def json(self):
        return strict_json(self.text)

    @property
    def problem(self):
        """The problem's name, or None."""
        if self.media_type != "application/problem+json":
            return None
        return self.json["type"].removeprefix("/problems/")

    def __str__(self):
        return f"{self.status} {self.body[:500]!r}"


class Closed(Exception):
    """The service closed the connection; PARTIAL is what came before."""

    def __init__(self, partial):
        super().__init__(f"connection closed after {len(partial)} bytes: {partial[:200]!r}")
        self.partial = partial


class Wire:
    """One connection, on which a test sends the bytes that it wants."""

    def __init__(self, port, receive_buffer=None, source="127.0.0.1"):
        self.socket = socket.socket()
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(REPLY_S)
        if source != "127.0.0.1":
            self.socket.bind((source, 0))
        self.socket.connect(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def send(self, data):
        """Sends all of DATA; Closed if the service does not take it."""
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            raise Closed(self.buffer) from None

    def fill(self):
        """Reads some more; Closed at the end."""
        try:
            data = self.socket.recv(65536)
        except ConnectionResetError:
            data = b""
        if not data:
            raise Closed(self.buffer)
        self.buffer += data

    def reply(self, head=False, seconds=REPLY_S):
        """The next reply; interim ones (100) are passed over."""
        self.socket.settimeout(seconds)
        start = time.monotonic()
        while True:
            while b"\r\n\r\n" not in self.buffer:
                self.fill()
            top, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
            lines = top.decode("latin-1").split("\r\n")
            version, status = lines[0].split(" ", 2)[:2]
            assert version in ("HTTP/1.1", "HTTP/1.0"), f"status line {lines[0]!r}"
            headers = [tuple(part.strip() for part in line.split(":", 1)) for line in lines[1:]]
            reply = Reply(int(status), headers, b"")
            if reply.status != 100:
                break
        length = reply.header("Content-Length")
        if head or reply.status in (204, 304):
            length = "0"
        if length is None:  # ends with the connection
            while True:
                try:
                    self.fill()
                except Closed:
                    break
            length = len(self.buffer)
        while len(self.buffer) < int(length):
            self.fill()
        reply.body, self.buffer = self.buffer[: int(length)], self.buffer[int(length) :]
        reply.seconds = time.monotonic() - start
        return reply

    def reply_has_begun(self):
        """Has something of a reply come?"""
        return bool(self.buffer or select.select([self.socket], [], [], 0)[0])

    def reply_within(self, seconds):
        """Has a reply begun within that time? If so it is in .last."""
        self.socket.settimeout(seconds)
        try:
            if not self.buffer:
                self.fill()
        except socket.timeout:
            return False
        self.last = self.reply()
        return True

    def ends(self, seconds=REPLY_S):
        """Waits until the service closes the connection; returns what it still sent."""
        self.socket.settimeout(seconds)
        try:
            while True:
                self.fill()
        except Closed as closed:
            return closed.partial
        except socket.timeout:
            raise AssertionError(f"the connection is still open after {seconds} s") from None


def service_end(service, wire):
    """The line that the kernel shows of the service's end of a connection, in words; None if there is none."""
    ends = service.port, wire.socket.getsockname()[1]
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        words = line.split()
        if tuple(int(address.split(":")[1], 16) for address in words[1:3]) == ends:
            return words
    return None


def has_open(service, wire):
    """Is it the service's connection still? (What it has closed before all was read, the kernel keeps without an owner.)"""
    words = service_end(service, wire)
    return words is not None and words[9] != "0"


def unsent_bytes(service, wire):
    """How many bytes of the service wait in the kernel for the client to read."""
    words = service_end(service, wire)
    return int(words[4].split(":")[0], 16) if words else 0


def request_bytes(method, target, body=b"", headers=(), version="HTTP/1.1"):
    """A request as it goes over the wire; HEADERS are pairs, None as value leaves a default one out."""
    if isinstance(target, str):
        target = target.encode("latin-1")
    fields = {"Host": "127.0.0.1"}
    if body or method in ("POST", "PUT"):
        fields["Content-Length"] = str(len(body))
        fields["Content-Type"] = "application/json"
    extra = []
    for name, value in headers.items() if isinstance(headers, dict) else headers:
        known = next((key for key in fields if key.lower() == name.lower()), None)
        if known:
            del fields[known]
        if value is not None:
            extra.append((name, value))
    lines = [method.encode() + b" " + target + b" " + version.encode()]
    for name, value in [*fields.items(), *extra]:
        lines.append(name.encode() + b": " + (value if isinstance(value, bytes) else value.encode("latin-1")))
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def as_body(value):
    """Bytes as they are, anything else as JSON; None is no body."""
    if value is None:
        return b""
    return value if isinstance(value, bytes) else json.dumps(value).encode()


def chunked(*parts):
    """A chunked body."""
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts if part) + b"0\r\n\r\n"
