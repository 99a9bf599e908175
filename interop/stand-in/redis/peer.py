"""A plain `SET key value NX PX` lock on nothing but a socket, which can be told to be wrong.

The judge of `cargo xtask interop` is itself judged with it: each fault below must be caught by the case that is there for
it, and two honest ones must pass. It can stand on either side; as ours it renews by itself, as our client does.
What it is told and says: ../../README.md.
"""

import os
import pathlib
import platform
import secrets
import socket
import sys
import threading
import time
import urllib.parse

POLL_S = 0.01
FAULTS = {
    "blind-set": "takes the lock whoever holds it",
    "blind-release": "frees whatever is there",
    "blind-extend": "writes itself in again when it extends",
    "no-lease": "leaves a lock that never ends",
    "no-renewal": "holds on beyond its lease without renewing",
    "no-clock": "says that it holds whatever the time",
    "mute": "does not tell what a release found",
}


def say(line):
    # In one piece: the thread that renews speaks, too, and `print` writes the end of the line by itself.
    os.write(sys.stdout.fileno(), f"{line}\n".encode())


class Redis:
    """One connection; a call at a time."""

    def __init__(self, url):
        place = urllib.parse.urlsplit(url)
        self.socket = socket.create_connection((place.hostname, place.port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.replies = self.socket.makefile("rb")
        self.turn = threading.Lock()

    def __call__(self, *words):
        words = [str(word).encode() for word in words]
        parts = b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)
        with self.turn:
            self.socket.sendall(b"*%d\r\n%b" % (len(words), parts))
            return self.reply()

    def reply(self):
        line = self.replies.readline()
        mark, rest = line[:1], line[1:-2]
        if mark == b"+":
            return rest
        if mark == b":":
            return int(rest)
        if mark == b"$":
            return None if rest == b"-1" else self.replies.read(int(rest) + 2)[:-2]
        sys.exit(f"the server said {line!r}")


class Lock:
    """Held, lost or free, as its own clock and its own calls have it."""

    def __init__(self, url, name, lease_ms, words):
        unknown = set(words) - set(FAULTS) - {"renews"}
        if unknown:
            sys.exit(f"no such fault: {', '.join(unknown)}")
        self.redis, self.name, self.lease_ms, self.words = Redis(url), name, lease_ms, words
        here = pathlib.Path(__file__).parent
        self.scripts = {what: (here / f"{what}.lua").read_text() for what in ("release", "extend")}
        self.value, self.deadline, self.let_go = None, 0, threading.Event()

    def take(self):
        value = secrets.token_hex(16)
        lease = [] if "no-lease" in self.words else ["PX", self.lease_ms]
        only_if_free = [] if "blind-set" in self.words else ["NX"]
        began = time.monotonic()
        while self.redis("SET", self.name, value, *only_if_free, *lease) is None:
            time.sleep(POLL_S)
            began = time.monotonic()
        self.value, self.deadline, self.let_go = value, began + self.lease_ms / 1000, threading.Event()
        if "renews" in self.words and "no-renewal" not in self.words:
            threading.Thread(target=self.renew, args=(self.let_go,), daemon=True).start()
        say("held")

    def renew(self, let_go):
        while not let_go.wait(self.lease_ms / 3000):
            if not self.extend():
                self.deadline = 0
                say("lost: a renewal found somebody else, or nobody")
                return

    def extend(self):
        began = time.monotonic()
        if "blind-extend" in self.words:
            self.redis("SET", self.name, self.value, "PX", self.lease_ms)
        elif not self.redis("EVAL", self.scripts["extend"], 1, self.name, self.value, self.lease_ms):
            return False
        self.deadline = began + self.lease_ms / 1000
        return True

    def release(self):
        self.let_go.set()
        if "blind-release" in self.words:
            return self.redis("DEL", self.name)
        return self.redis("EVAL", self.scripts["release"], 1, self.name, self.value)

    def is_held(self):
        return "no-clock" in self.words or time.monotonic() < self.deadline


def main():
    if sys.argv[1:] == ["--version"]:
        say(f"stand-in, Python {platform.python_version()}")
        return
    url, name, lease_ms = sys.argv[1], sys.argv[2], int(sys.argv[3])
    lock = Lock(url, name, lease_ms, sys.argv[4:])
    lock.take()
    for order in sys.stdin:
        match order.strip():
            case "take":
                lock.take()
            case "check":
                say(f"held: {'yes' if lock.is_held() else 'no'}")
            case "extend":
                say(f"extend: {'ok' if lock.extend() else 'lost'}")
            case "release":
                found = lock.release()
                say(f"release: {'sent' if 'mute' in lock.words else 'ok' if found else 'lost'}")
            case other:
                sys.exit(f"an order that cannot be followed: {other}")


main()
