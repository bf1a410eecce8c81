"""Measure how many unchanged kept cases `evennia-ai check` checks in a second.

    DJANGO_SETTINGS_MODULE=server.conf.settings python benchmarks/kept.py [--cases 400]

Call it in the folder of the demo, after `make play` has built the village. The demo's kept cases
are copied until there are enough. Three times are measured, of one process on one core:

    checked  every case is read and its prompt composed, as `evennia-ai check` does
    changed  every case is read and its revisions compared, as with `--changed`
    composed the prompts of cases that were read before, as in the game after an edit
"""

import argparse
import shutil
import tempfile
import time
from pathlib import Path

DEMO = Path(__file__).resolve().parents[1] / "world" / "demo" / "kept"


def rate(work, cases):
    begun = time.perf_counter()
    for one in cases:
        found = work(one)
        assert found.state == "same", f"{found.name}: {found.problem or 'differs'}"
    return len(cases) / (time.perf_counter() - begun)


def measure(folder):
    """Return how many cases of a folder are checked in a second, by kind of check."""
    from evennia_ai.npc.senses.presence import find_again
    from evennia_ai.npc.views.kept import KeptChecker, case_files, read_cases

    files = case_files(folder)
    checker = KeptChecker(find_again)
    for path in files[:8]:  # read the cards and books first
        checker.check(path)
    read, _ = read_cases(folder, most=len(files))
    return {
        "checked": rate(checker.check, files),
        "changed": rate(lambda path: checker.check(path, only_changed=True), files),
        "composed": rate(lambda pair: checker.check_case(*pair), read),
    }


def copied(folder, *, cases):
    """Fill a folder with copies of the demo's kept cases."""
    there = sorted(DEMO.glob("*.yaml"))
    for number in range(cases):
        shutil.copy(there[number % len(there)], folder / f"case-{number:05}.yaml")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=400)
    asked = parser.parse_args()
    import django

    django.setup()
    with tempfile.TemporaryDirectory() as name:
        copied(Path(name), cases=asked.cases)
        for kind, found in measure(Path(name)).items():
            print(f"{kind:9} {found:8,.0f} cases a second")


if __name__ == "__main__":
    main()
