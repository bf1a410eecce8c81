"""On how many examples a property is tried: a fifth in `make test` and `make check`.

Examples are others in every run. On another Python they are fewer. Hypothesis's own option chooses
the profile; if you change what a property is about, try all its examples with
`--hypothesis-profile=every`.
"""

from hypothesis import HealthCheck, settings

FEW = "few"
SOME = "some"
EVERY = "every"
FEWEST = 5


def register_profiles() -> None:
    """Make all known; `SOME` counts where the command line names none."""
    # How long an example takes says how busy the machine is; times are for the benchmarks.
    untimed = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
    settings.register_profile(EVERY, max_examples=100, **untimed)
    settings.register_profile(FEW, max_examples=10, **untimed)
    settings.register_profile(SOME, max_examples=20, **untimed)
    settings.load_profile(SOME)


def up_to(count: int) -> int:
    """`count`, or in a run that does not try every example its part of them; five at least."""
    return min(count, max(FEWEST, count * settings.default.max_examples // 100))
