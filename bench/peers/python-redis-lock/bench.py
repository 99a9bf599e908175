"""python-redis-lock, measured by `cargo xtask bench redis`. What it is told and says: ../README.md.

The surprise: its locks are not renewed here (`auto_renewal` is off, its default), so a slice costs no threads but its own.
"""

import importlib.metadata
import os
import platform
import sys
import threading
import time

import redis
import redis_lock

TURNS = 8
LEASE_S = 30
HELD_FOR_S = 0.004
LOOKS_EVERY_S = 0.2
SIGNAL = "ball-taken"
NAME = "orders/item-00000000"


def now():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def turns(client, end):
    noted = []

    def task():
        mine = []
        while time.monotonic() < end:
            lock = redis_lock.Lock(client, NAME, expire=LEASE_S)
            lock.acquire()
            mine.append(str(now()))
            lock.release()
        noted.extend(mine)

    tasks = [threading.Thread(target=task) for _ in range(TURNS)]
    for thread in tasks:
        thread.start()
    for thread in tasks:
        thread.join()
    return noted


def ball(client, end):
    noted, me = [], str(os.getpid()).encode()
    while time.monotonic() < end:
        lock = redis_lock.Lock(client, NAME, expire=LEASE_S)
        lock.acquire()
        noted.append(f"T{now()}")
        client.lpush(SIGNAL, me)
        time.sleep(HELD_FOR_S)
        noted.append(f"P{now()}")
        lock.release()
        # It does not ask again before the other one has it.
        while time.monotonic() < end:
            signal = client.blpop(SIGNAL, timeout=LOOKS_EVERY_S)
            if signal is not None and signal[1] != me:
                break
    return noted


MODES = {"turns": turns, "ball": ball}


def main():
    if sys.argv[1:] == ["--version"]:
        version = importlib.metadata.version("python-redis-lock")
        print(f"python-redis-lock {version}, redis-py {redis.__version__}, Python {platform.python_version()}")
        return
    mode, url = MODES[sys.argv[1]], sys.argv[2]
    client = redis.Redis.from_url(url)
    with redis_lock.Lock(client, "warm-up", expire=LEASE_S):
        pass
    print("ready", flush=True)
    for line in sys.stdin:
        cpu = time.process_time_ns()
        noted = mode(client, time.monotonic() + int(line) / 1000)
        print(time.process_time_ns() - cpu, *noted, flush=True)


main()
