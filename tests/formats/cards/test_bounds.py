"""The worst card files take at most two seconds of processor time and 200 MB of memory.

The size of the file itself does not count. The seconds are those of the usual machine in
`tests/effort.py`. The tests allow twice as many, because the speed of a busy machine is only
estimated. A file without a bound would take far longer.
"""

import json

import pytest

from evennia_ai.engine.errors import FormatError
from evennia_ai.formats.cards.loading import load_card
from tests.formats.cards.builders import card_data
from tests.formats.cards.carriers import as_json
from tests.formats.cards.measured import measuring
from tests.formats.cards.worst import WORST

pytestmark = pytest.mark.minutes(1)

SECONDS = 4
MIB = 200


@pytest.fixture(scope="module")
def measure():
    with measuring() as measured:
        yield measured


@pytest.mark.long
@pytest.mark.parametrize("name", WORST)
def test_worst_card_files_stay_within_the_bounds(name, measure, tmp_path):
    make, refused_with = WORST[name]
    path = tmp_path / "card"
    path.write_bytes(make())
    cost = measure(path)
    assert refused_with in cost["told"]
    assert bool(refused_with) is bool(cost["told"])
    # Measure again, because another program may have slowed down the first measurement.
    if cost["seconds"] > SECONDS or cost["mib"] > MIB:
        cost = measure(path)
    assert (cost["seconds"] <= SECONDS, cost["mib"] <= MIB, cost["notices"] <= 21) == (
        *(True, True, True),
    ), cost


def test_card_nested_to_the_limit_is_read():
    deep = json.loads("[" * 61 + "]" * 61)
    assert load_card(as_json(card_data(extensions={"x": deep}))).card.name == "Marta"
    with pytest.raises(FormatError, match="nested more than 64 deep"):
        load_card(as_json(card_data(extensions={"x": [deep]})))
