"""Stands in for `twistd`, and has it started by `forking_twistd.py`, which listens at SOCKET.

    python -I -S asking_twistd.py SOCKET TWISTD WORDS...

Handed over is what a new process would have of this one. It waits for what it asked to end, or to
have become a daemon, and ends with the same status.
"""

import marshal
import os
import socket
import sys


def main(path: str, *words: str) -> int:
    """The exit status of these words."""
    with socket.socket(socket.AF_UNIX) as forking:
        forking.connect(path)
        socket.send_fds(forking, [b"-"], [0, 1, 2])
        folder = os.getcwd()  # noqa: PTH109 - to import pathlib takes longer than all of this
        forking.sendall(marshal.dumps((words, folder, os.umask(0), dict(os.environ))))
        (status,) = forking.recv(1)
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
