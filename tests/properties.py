"""Set how many examples Hypothesis tries for each property.

`make check` tries a fifth of the examples. `make test` and runs on another Python try a tenth.
Each run draws new examples. If you change the code behind a property, try all its examples with
`--hypothesis-profile=every`.
"""

from hypothesis import HealthCheck, settings

FEW = "few"
SOME = "some"
EVERY = "every"
FEWEST = 5


def register_profiles() -> None:
    """Register all profiles. `SOME` is used if the command line names none."""
    # Examples have no time limit, because their time depends on how busy the machine is.
    untimed = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
    settings.register_profile(EVERY, max_examples=100, **untimed)
    settings.register_profile(FEW, max_examples=10, **untimed)
    settings.register_profile(SOME, max_examples=20, **untimed)
    settings.load_profile(SOME)


def up_to(count: int) -> int:
    """Return `count`, or a part of it if the profile does not try every example; at least 5."""
    return min(count, max(FEWEST, count * settings.default.max_examples // 100))
