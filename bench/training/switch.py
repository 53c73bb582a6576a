"""A network switch between interfaces of Linux, with lines of a given rate and delay.

python3 switch.py RATE DELAY INTERFACE...: bits a second, seconds one way. Says "ready"; ends with its standard input.

A frame goes out at its sender's line, and at once on its receiver's, as soon as both are free, and takes its bits' time there; it comes in
DELAY later. So lines are full duplex, many senders share a receiver's line, and nothing is lost.
"""
import heapq
import os
import select
import socket
import sys
import time

ETH_P_ALL = 3
SOL_PACKET, PACKET_VNET_HDR, PACKET_IGNORE_OUTGOING = 263, 15, 23
SO_RCVBUFFORCE = 33
# A header before each frame states the work that the kernel left: it passes up to 64 kB of TCP as one frame, to be split later.
TO_DO = 10
LONGEST = 65536 + 256
FRAME, HEADERS, GAP = 1514, 66, 24  # Ethernet: a full frame, the headers of each frame, and preamble, checksum and pause


def opened(name):
    port = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    port.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
    port.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    port.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 26)
    port.bind((name, ETH_P_ALL))
    return port


def bits(frame):
    size = len(frame) - TO_DO
    frames = -(-size // FRAME)
    return 8 * (size + (frames - 1) * HEADERS + frames * GAP)


def main():
    rate, delay = float(sys.argv[1]), float(sys.argv[2])
    ports = [opened(name) for name in sys.argv[3:]]
    # Frames are forwarded in time even when all cores are busy.
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    print("ready", flush=True)
    sends_until = {port: 0.0 for port in ports}
    receives_until = dict(sends_until)
    port_of = {}
    waiting = []
    count = 0
    while True:
        now = time.monotonic()
        while waiting and waiting[0][0] <= now:
            _, _, port, frame = heapq.heappop(waiting)
            port.send(frame)
        pause = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        ready, _, _ = select.select([*ports, sys.stdin], [], [], pause)
        for port in ready:
            if port is sys.stdin:
                return
            while True:
                try:
                    frame = port.recv(LONGEST, socket.MSG_DONTWAIT)
                except BlockingIOError:
                    break
                to, source = frame[TO_DO:TO_DO + 6], frame[TO_DO + 6:TO_DO + 12]
                port_of[source] = port
                known = port_of.get(to)
                takes = bits(frame) / rate
                begins = max(time.monotonic(), sends_until[port])
                sends_until[port] = begins + takes
                for out in [known] if known else [other for other in ports if other is not port]:
                    receives_until[out] = max(begins, receives_until[out]) + takes
                    count += 1
                    heapq.heappush(waiting, (receives_until[out] + delay, count, out, frame))


main()
