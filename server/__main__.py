"""Run a target of the Makefile, such as `python3 -m server play` for `make play`.

Old versions of Python must be able to parse this file, or they could not show the message that they
are too old.
"""

import sys

NEEDED = (3, 11)

if sys.version_info < NEEDED:
    sys.exit(
        "evennia_ai needs Python %d.%d or newer, and %s is %s. Choose another one with: "
        "make PYTHON=/path/to/python3.11 play" % (NEEDED + (sys.executable, sys.version.split()[0]))
    )

from server.newcomer import main  # noqa: E402 - needs the check above

sys.exit(main(sys.argv[1:]))
