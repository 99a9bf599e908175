"""redis-py's `redis.lock.Lock`, as a peer of `cargo xtask interop`. What it is told and says: ../README.md.

The surprise: a lease of 0 is redis-py's own default, a lock that never ends by itself.
"""

import platform
import sys

import redis
from redis.exceptions import LockError

# Its default is 0.1 s; shorter, so that it meets more moments of the other side.
POLL_S = 0.01


def say(line):
    print(line, flush=True)


def attempt(what, deed):
    try:
        deed()
        say(f"{what}: ok")
    except LockError as error:
        say(f"{what}: lost ({type(error).__name__}: {error})")


def main():
    if sys.argv[1:] == ["--version"]:
        say(f"redis-py {redis.__version__}, Python {platform.python_version()}")
        return
    url, name, lease_ms = sys.argv[1], sys.argv[2], int(sys.argv[3])
    lease_s = lease_ms / 1000 if lease_ms > 0 else None
    lock = redis.Redis.from_url(url).lock(name, timeout=lease_s, sleep=POLL_S)
    lock.acquire()
    say("held")
    for order in sys.stdin:
        match order.strip():
            case "take":
                lock.acquire()
                say("held")
            case "extend":
                attempt("extend", lambda: lock.extend(lease_s, replace_ttl=True))
            case "release":
                attempt("release", lock.release)
            case other:
                sys.exit(f"an order that cannot be followed: {other}")


main()
