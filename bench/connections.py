"""Orders over many connections at once, to measure the service's memory and the latency of its answers."""

import contextlib
import gc
import re
import resource
import select
import socket
import struct
import time

from harness import PATIENCE_S, Failure


@contextlib.contextmanager
def connected(service, count):
    """COUNT connections to the service."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with contextlib.ExitStack() as opened_sockets:
        sockets = []
        for _ in range(count):
            each = opened_sockets.enter_context(socket.create_connection(("127.0.0.1", service.port)))
            for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
                each.setsockopt(socket.SOL_SOCKET, option, struct.pack("ll", PATIENCE_S, 0))
            sockets.append(each)
        yield sockets


def order_of(product):
    body = f'{{"product_id":{product},"quantity":1}}'
    return f"POST /orders HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()


def read_reply(connection):
    """Reads one reply to its end; it must be 201."""
    reply = b""
    while True:
        try:
            got = connection.recv(65536)
        except BlockingIOError:
            got = b""
        if not got:
            raise Failure(f"no reply to an order, or half of one: {reply[:200]!r}")
        reply += got
        head, end, body = reply.partition(b"\r\n\r\n")
        if end:
            length = re.search(rb"(?i)\r\nContent-Length: *(\d+)", head)
            if not length or not head.startswith(b"HTTP/1.1 201"):
                raise Failure(f"unexpected reply to an order: {head[:200]!r}")
            if len(body) >= int(length[1]):
                return


def order_on_all(sockets, product, rounds):
    order = order_of(product)
    for _ in range(rounds):
        for each in sockets:
            each.sendall(order)
        for each in sockets:
            read_reply(each)


def order_in_a_loop(sockets, product, seconds):
    """Seconds of each answer, if each connection sends its next order after the answer to the last until the time is up."""
    order, times, sent = order_of(product), [], {}
    by_number = {each.fileno(): each for each in sockets}
    gc.disable()  # a collection would count as the service's time
    try:
        with select.epoll() as ready:
            end = time.monotonic() + seconds
            for number, each in by_number.items():
                ready.register(number, select.EPOLLIN)
                sent[number] = time.monotonic()
                each.sendall(order)
            while sent:
                events = ready.poll(PATIENCE_S)
                if not events:
                    raise Failure(f"no reply to an order for {PATIENCE_S} s")
                for number, _ in events:
                    read_reply(by_number[number])
                    now = time.monotonic()
                    times.append(now - sent[number])
                    if now >= end:
                        del sent[number]
                        ready.unregister(number)
                    else:
                        sent[number] = now
                        by_number[number].sendall(order)
    finally:
        gc.enable()
    return times
