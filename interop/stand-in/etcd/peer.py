"""A lock of etcd by nothing but its JSON gateway, which can be told to be wrong: a key of its own under `NAME/` on a lease
that it renews, in when no key there was made before it.

The judge of `cargo xtask interop` is itself judged with it: each fault below must be caught by the case that is there for
it, and two honest ones must pass. It can stand on either side. What it is told and says: ../../README.md.
"""

import base64
import http.client
import json
import os
import platform
import secrets
import sys
import threading
import time
import urllib.parse

ANSWER_TAKES_S = 20
# What a client does that waits without being told; ours asks again as often, besides.
POLL_S = 2
FAULTS = {
    "blind-take": "comes in whoever is there",
    "blind-release": "frees whatever is there",
    "no-lease": "leaves a key that never ends",
    "no-renewal": "holds on beyond its lease without renewing",
    "no-clock": "says that it holds whatever the time",
    "polls": "waits without watching",
    "counts-below": "waits for locks whose names only begin as its own does: right for a peer, wrong for ours",
    "mute": "does not tell what a release found",
}


def say(line):
    # In one piece: the thread that renews speaks, too, and `print` writes the end of the line by itself.
    os.write(sys.stdout.fileno(), f"{line}\n".encode())


def code(text):
    return base64.b64encode(text.encode()).decode()


class Etcd:
    """A connection for each call, so that threads need not take turns."""

    def __init__(self, url):
        place = urllib.parse.urlsplit(url)
        self.place = (place.hostname, place.port)

    def open(self, path, body, timeout):
        connection = http.client.HTTPConnection(*self.place, timeout=timeout)
        connection.request("POST", f"/v3/{path}", json.dumps(body))
        return connection.getresponse()

    def __call__(self, path, **body):
        answer = json.loads(self.open(path, body, ANSWER_TAKES_S).readline())
        if "error" in answer:
            sys.exit(f"etcd refused {path}: {answer}")
        return answer.get("result", answer)

    def wait_until_gone(self, key, revision):
        create = {"key": code(key), "start_revision": revision, "filters": ["NOPUT"]}
        with self.open("watch", {"create_request": create}, None) as news:
            while not json.loads(news.readline()).get("result", {}).get("events"):
                pass


class Lock:
    """Held, lost or free, as its own clock and its own calls have it."""

    def __init__(self, url, name, lease_ms, words):
        unknown = set(words) - set(FAULTS)
        if unknown:
            sys.exit(f"no such fault: {', '.join(unknown)}")
        self.etcd, self.name, self.words = Etcd(url), name, words
        self.ttl = -(-lease_ms // 1000)
        self.key, self.lease, self.deadline, self.let_go = None, None, 0, None

    def take(self):
        while not self.enter():
            pass
        say("held")

    def enter(self):
        """Stands in line and waits until it is in; not so if its key was gone by then."""
        self.deadline, self.let_go = time.monotonic() + self.ttl, threading.Event()
        self.lease = None if "no-lease" in self.words else self.etcd("lease/grant", TTL=self.ttl)["ID"]
        self.key = f"{self.name}/{secrets.token_hex(16)}"
        lease = {} if self.lease is None else {"lease": self.lease}
        made = int(self.etcd("kv/put", key=code(self.key), value="", **lease)["header"]["revision"])
        if self.lease is not None and "no-renewal" not in self.words:
            threading.Thread(target=self.renew, args=(self.let_go,), daemon=True).start()
        while "blind-take" not in self.words:
            rival, revision = self.rival(made)
            if rival is None:
                break
            if "polls" in self.words:
                time.sleep(POLL_S)
            else:
                self.etcd.wait_until_gone(rival, revision + 1)
        return self.is_there()

    def rival(self, made):
        """The last that was made before, and the revision of that answer."""
        order = {"sort_order": "DESCEND", "sort_target": "CREATE", "max_create_revision": made - 1}
        answer = self.etcd("kv/range", key=code(f"{self.name}/"), range_end=code(f"{self.name}0"), **order)
        keys = [base64.b64decode(entry["key"]).decode() for entry in answer.get("kvs", [])]
        depth = self.key.count("/")
        rivals = [key for key in keys if "counts-below" in self.words or key.count("/") == depth]
        return next(iter(rivals), None), int(answer["header"]["revision"])

    def is_there(self):
        return "count" in self.etcd("kv/range", key=code(self.key), count_only=True)

    def renew(self, let_go):
        while not let_go.wait(self.ttl / 3):
            began = time.monotonic()
            left = self.etcd("lease/keepalive", ID=self.lease).get("TTL")
            if let_go.is_set():
                return
            if left is None or not self.is_there():
                self.deadline = 0
                say("lost: a renewal found nothing")
                return
            self.deadline = began + int(left)

    def release(self):
        self.let_go.set()
        whole = {"key": code(f"{self.name}/"), "range_end": code(f"{self.name}0")}
        which = whole if "blind-release" in self.words else {"key": code(self.key)}
        return "deleted" in self.etcd("kv/deleterange", **which)

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
            case "release":
                found = lock.release()
                say(f"release: {'sent' if 'mute' in lock.words else 'ok' if found else 'lost'}")
            case other:
                sys.exit(f"an order that cannot be followed: {other}")


main()
