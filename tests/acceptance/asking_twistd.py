"""Run `twistd` as a fork of the process that `forking_twistd.py` started.

    python -I -S asking_twistd.py SOCKET TWISTD WORDS...

This program sends its arguments, folder, umask, environment and standard files through SOCKET. The
fork uses them as a new process would. This program waits until the fork ends or becomes a daemon,
and exits with the same status.
"""

import marshal
import os
import socket
import sys


def main(path: str, *words: str) -> int:
    """Ask for a fork that runs these words, and return its exit status."""
    with socket.socket(socket.AF_UNIX) as forking:
        forking.connect(path)
        socket.send_fds(forking, [b"-"], [0, 1, 2])
        folder = os.getcwd()  # noqa: PTH109 - importing pathlib takes longer than the rest
        forking.sendall(marshal.dumps((words, folder, os.umask(0), dict(os.environ))))
        (status,) = forking.recv(1)
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
