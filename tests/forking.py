"""Fork test processes from one program that has imported what they need.

    python -m tests.forking MODULE

First `MODULE.prepare()` imports everything; it must leave no thread and no connection open. Then
the program reads commands, one JSON object per line, and answers each with one line:

    {"begin": GIVEN, "out": ..., "err": ...}  fork a process that runs `MODULE.live(GIVEN)`, and
                                              answer with its process number
    {"poll": PID}                             answer how that process ended, or null while it runs

Importing Evennia takes longer than most of these processes run.
"""

import json
import os
import signal
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

from tests.forked import become

ROOT = Path(__file__).resolve().parents[1]
POLL_SECONDS = 0.05


class Forker:
    """The program of one module, from which processes are forked until it is closed."""

    def __init__(self, module, *, environment, said):
        """Start the program. Its errors before forking go to the file `said`."""
        self._said = said
        with said.open("w") as complained:
            self._program = subprocess.Popen(
                [sys.executable, "-m", __name__, module],
                cwd=ROOT, env=environment, text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=complained,
            )  # fmt: skip

    def begin(self, given, *, out, err):
        """Fork a process that does what `given` says."""
        for file in (out, err):
            file.touch()  # A pipe with a name must not become a regular file.
        pid = self.told({"begin": given, "out": str(out), "err": str(err)})
        return Forked(self, pid, out=out, err=err)

    def told(self, asked):
        self._program.stdin.write(json.dumps(asked) + "\n")
        self._program.stdin.flush()
        answer = self._program.stdout.readline()
        assert answer, self._said.read_text()
        return json.loads(answer)

    def close(self):
        """End the program. Its processes must have ended."""
        self._program.communicate()


class Forked:
    """A process forked from such a program, with the interface of `subprocess.Popen`."""

    def __init__(self, forker, pid, *, out, err):
        self.pid, self.out, self.err, self.returncode = pid, out, err, None
        self._forker = forker

    def poll(self):
        if self.returncode is None:
            self.returncode = self._forker.told({"poll": self.pid})
        return self.returncode

    def wait(self, seconds):
        end = time.monotonic() + seconds
        while self.poll() is None:
            assert time.monotonic() < end, f"{self.pid} lives on: {self.err.read_text()}"
            time.sleep(POLL_SECONDS)
        return self.returncode

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self):
        self.send_signal(signal.SIGKILL)


def use_database(address):
    """Connect this process to another database of the same cluster."""
    from django.db import connections

    connections.settings["default"]["NAME"] = address.rpartition("/")[2]
    del connections["default"]  # The next query opens a connection to that database.


def main(name):
    module = import_module(name)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    module.prepare()
    for line in sys.stdin:
        asked = json.loads(line)
        if "poll" in asked:
            pid, status = os.waitpid(asked["poll"], os.WNOHANG)
            answer = os.waitstatus_to_exitcode(status) if pid else None
        else:
            answer = os.fork()
            if not answer:
                _live(module, asked)
        print(json.dumps(answer), file=answers, flush=True)


def _live(module, asked):
    """Run the module's work in the forked process."""

    def work():
        module.live(asked["begin"])
        return 0

    become(work, out=asked["out"], err=asked["err"])


if __name__ == "__main__":
    main(sys.argv[1])
