"""Takes and releases a lock of redis-py in a tight loop. See pollers_test.go."""

import os
import sys
import threading
import time

import redis

port, name, hold, door = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]) / 1000, sys.argv[4]
client = redis.Redis(port=port)
client.ping()
print("ready", flush=True)
os.read(0, 1)
over = threading.Event()


def await_end():
    os.read(0, 1)
    over.set()


threading.Thread(target=await_end, daemon=True).start()
while not over.is_set():
    start = time.monotonic()
    with client.lock(name, timeout=30):
        waited = time.monotonic() - start
        os.close(os.open(door, os.O_CREAT | os.O_EXCL))  # fails if somebody else is inside
        if hold:
            time.sleep(hold)
        print(round(waited * 1e6), flush=True)
        os.unlink(door)
