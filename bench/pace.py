#!/usr/bin/env python3
"""Send 64-byte frames on an interface at a steady rate, in small bursts, until it is killed.

usage: pace.py IFNAME FRAMES_PER_SECOND [FRAMES_IN_A_BURST]
"""
import socket
import sys
import time

FRAME = b"\x02\x00\x00\x00\x00\x02" b"\x02\x00\x00\x00\x00\x01" b"\x88\xb5" + bytes(50)


def main():
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    sock.bind((sys.argv[1], 0))
    burst = int(sys.argv[3]) if len(sys.argv) > 3 else 8
    step = burst / int(sys.argv[2])
    due = time.monotonic()
    while True:
        for _ in range(burst):
            sock.send(FRAME)
        due = max(due + step, time.monotonic() - 10 * step)
        time.sleep(max(0, due - time.monotonic()))


main()
