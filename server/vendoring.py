"""Download again the browser libraries that `vendor.json` lists: python3 -m server.vendoring

It needs `npm`. An installation of the package does not run it: the files are part of the package,
each with its licence, and a test compares their hashes. Standard library only.
"""

import hashlib
import json
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any, Final

VENDOR: Final = (
    Path(__file__).resolve().parents[1] / "evennia_ai" / "static" / "evennia_ai" / "vendor"
)


def fetch(library: dict[str, Any], folder: Path) -> None:
    """Download the files of one library, and write their hashes into its row."""
    done = subprocess.run(
        ["npm", "pack", "--silent", f"{library['name']}@{library['version']}"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    with tarfile.open(folder / done.stdout.strip().splitlines()[-1]) as archive:
        for file in library["files"]:
            member = archive.extractfile(f"package/{file['source']}")
            if member is None:
                raise SystemExit(f"{library['name']} has no file {file['source']}")
            content = member.read()
            target = VENDOR / file["path"]
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
            file["sha256"] = hashlib.sha256(content).hexdigest()


def main() -> int:
    table = VENDOR / "vendor.json"
    libraries = json.loads(table.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        for library in libraries:
            fetch(library, Path(folder))
    table.write_text(f"{json.dumps(libraries, indent=2)}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
