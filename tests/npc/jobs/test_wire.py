"""Jobs as JSON: written with stable bytes, parsed again, and refused if invalid."""

import pytest

from evennia_ai.npc.jobs.job import VERSION, Job
from evennia_ai.npc.jobs.wire import MOST_BYTES, JobError, OtherVersionError, job_of, text_of

JOB = Job(
    kind="compact",
    idempotency="compact:481:3:912:9f2c",
    lock="npc:12",
    queueing_lock="compact:481",
    given={"conversation": 481, "hash": "9f2c"},
    limits={"calls_per_day": 20},
    deadline=1763849400.0,
)


def test_job_is_the_same_after_a_round_trip():
    assert job_of(text_of(JOB)) == JOB
    assert job_of(text_of(Job(kind="embed", idempotency="embed:1"))).deadline == 0.0


def test_text_of_a_job_does_not_depend_on_the_order_of_its_keys():
    turned = Job(
        kind="compact",
        idempotency=JOB.idempotency,
        lock="npc:12",
        queueing_lock="compact:481",
        given={"hash": "9f2c", "conversation": 481},
        limits={"calls_per_day": 20},
        deadline=1763849400.0,
    )
    assert text_of(turned) == text_of(JOB)


def test_job_over_a_kilobyte_is_refused_with_its_name():
    with pytest.raises(JobError, match=r"'long' has \d+ bytes, at most 1024") as caught:
        text_of(Job(kind="compact", idempotency="long", given={"text": "ж" * MOST_BYTES}))
    assert "ids and hashes" in str(caught.value)


@pytest.mark.parametrize(
    ("version", "who"),
    [(VERSION + 1, "this worker's evennia-ai"), (VERSION - 1, "the game that asked for it")],
)
def test_job_of_another_version_is_refused_with_its_name(version, who):
    with pytest.raises(OtherVersionError, match=rf"'j' is of version {version}.*{who}"):
        job_of(f'{{"version":{version},"idempotency":"j","kind":"compact","new":1}}')


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "not JSON"),
        ("[]", "must be a JSON object"),
        ("{}", "'without a name' is of version None"),
        ('{"version":1,"kind":"compact"}', r"\.idempotency: is missing"),
        ('{"version":1,"idempotency":"j"}', r"\.kind: is missing"),
        (
            '{"version":1,"idempotency":"j","kind":"compact","shell":"rm"}',
            r"'j'\.shell: there is no such field",
        ),
        ('{"version":1,"idempotency":"","kind":"compact"}', "must have at least 1 character"),
        ('{"version":true,"idempotency":"j","kind":"compact"}', "must be a whole number"),
        ('{"version":1,"idempotency":"j","kind":"compact","limits":{"a":"b"}}', r"\.limits\.a: "),
        ('{"version":1,"idempotency":"j","kind":"compact","given":[1]}', r"\.given: "),
        (
            '{"version":1,"idempotency":"j","kind":"compact","deadline":"soon"}',
            r"\.deadline: must be a number",
        ),
    ],
)
def test_text_that_is_not_a_job_is_refused_with_the_reason(text, told):
    with pytest.raises(JobError, match=told):
        job_of(text)
