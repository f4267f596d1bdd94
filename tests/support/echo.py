#!/usr/bin/env python3
"""Send numbered frames on an interface and expect each of them back, once and in order.

usage: echo.py IFNAME COUNT WINDOW
Frames of all lengths from 60 to 1514 bytes, WINDOW of them on their way at most. What comes back has
its addresses exchanged. Prints "N frames"; ends with 1 at the first frame that is wrong or missing.
"""
import socket
import struct
import sys

ETHERTYPE = 0x88B5  # IEEE 802 local experimental
HERE, THERE = b"\x02\x00\x00\x00\x00\x01", b"\x02\x00\x00\x00\x00\x02"
DEADLINE = 10


def make_frame(seq):
    length = 60 + seq * 7 % 1455
    head = THERE + HERE + struct.pack("!HI", ETHERTYPE, seq)
    return head + bytes((seq + i) % 256 for i in range(length - len(head)))


def expected(seq):
    frame = make_frame(seq)
    return frame[6:12] + frame[0:6] + frame[12:]


def receive(sock):
    while True:
        frame, address = sock.recvfrom(2048)
        if address[2] != socket.PACKET_OUTGOING:
            return frame


def main():
    ifname, count, window = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETHERTYPE))
    sock.bind((ifname, ETHERTYPE))
    sock.settimeout(DEADLINE)
    sent = 0
    for seq in range(count):
        while sent < count and sent - seq < window:
            sock.send(make_frame(sent))
            sent += 1
        try:
            frame = receive(sock)
        except socket.timeout:
            sys.exit(f"frame {seq} has not come back")
        if frame != expected(seq):
            got = struct.unpack("!I", frame[14:18])[0]
            sys.exit(f"frame {seq} was expected, and {got} came, or a changed one")
    print(f"{count} frames")


main()
