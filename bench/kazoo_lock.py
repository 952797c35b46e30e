#!/usr/bin/python3
"""How often a second kazoo's lock changes hands: threads that share one session all want the same key.

usage: kazoo_lock.py HOST:PORT THREADS SECONDS

Threads may share kazoo's client, and it is faster so: with a session for each thread, kazoo reaches about 0.9 of this rate.
Each thread uses its lock as the example in kazoo's documentation does.

Prints one number: acquisitions, each with its release, a second."""

import sys
import threading
import time

from kazoo.client import KazooClient

PATH = "/oversell/kazoo/bench"


def take_turns(client, start, seconds, ret_turns):
    lock = client.Lock(PATH)
    with lock:
        pass
    start.wait()
    end = time.monotonic() + seconds
    turns = 0
    while True:
        with lock:
            pass
        if time.monotonic() > end:
            break
        turns += 1
    ret_turns.append(turns)


def main():
    hosts, threads, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    client = KazooClient(hosts=hosts)
    client.start(timeout=10)
    start = threading.Barrier(threads)
    turns = []
    team = [threading.Thread(target=take_turns, args=(client, start, seconds, turns)) for _ in range(threads)]
    for thread in team:
        thread.start()
    for thread in team:
        thread.join()
    client.stop()
    client.close()
    if len(turns) < threads:
        sys.exit("a thread has failed")
    print(sum(turns) / seconds)


main()
