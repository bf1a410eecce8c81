"""What each `make` runs, such as `make play`: `python3 -m server play`.

This file must also be readable by an old Python, or nobody would see the message about its age.
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
