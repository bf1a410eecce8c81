"""Test how often a good reply is changed, or taken for an odd one."""

import re
from collections import Counter

from evennia_ai.npc.speech.reply_acts import acts_of
from evennia_ai.services.llm.odd_replies import oddities
from evennia_ai.services.llm.speech import MAX_CHARACTERS, speech_in
from tests.services.llm.good_replies import NAME, OTHERS, good_replies

COUNT = 2_000
MOST_CHANGED = 2
SEED = 47
_SUBJECT = re.compile(rf"\A(?:she|{NAME})\s+", re.IGNORECASE)


def words_of(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.casefold())


def changed(reply: str) -> str:
    """Return what the game changes about a reply, "" for nothing."""
    said = speech_in(reply, own_names=[NAME], other_names=OTHERS)
    if said.split() != reply.split():
        return "text"
    acts = acts_of(said, own_names=[NAME])
    actions = re.compile(r"(?<!\w)([*_])(?=\w)([^*_\n]+)(?<=\S)\1(?!\w)")
    without_subjects = actions.sub(lambda found: _SUBJECT.sub("", found[2]), said)
    if words_of(" ".join(act.text for act in acts)) != words_of(without_subjects):
        return "words"
    if not actions.search(reply) and [act.kind for act in acts] != ["say"]:
        return "speech shown as an action"
    return "odd" if oddities(said, asked=reply) else ""


def test_at_most_one_of_a_thousand_good_replies_is_changed_or_odd(capsys) -> None:
    replies = good_replies(COUNT, seed=SEED)
    assert all(len(reply) <= MAX_CHARACTERS for _, reply in replies)
    found = {reply: (style, why) for style, reply in replies if (why := changed(reply))}
    count = sum(reply in found for _, reply in replies)
    different = len({reply for _, reply in replies})
    with capsys.disabled():
        print(f"\n{count} of {COUNT} good replies changed or odd ({different} different)")
    assert count <= MOST_CHANGED, Counter(found.values())
