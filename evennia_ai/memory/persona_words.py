"""The words by which persona protection judges: tables, one for each of its rules.

English, and of some other languages the first person and the verb of being.
"""

import re
from typing import Final


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


QUOTED: Final = re.compile(r"\"[^\"]*\"|“[^”]*”|«[^»]*»|„[^“”]*[“”]|「[^」]*」")
"""Direct speech: what somebody said, not what is so."""

MACHINERY: Final = re.compile(
    r"\b(?:language model|large model|artificial intelligence|chat ?bot|system prompt"
    r"|system message|developer message|(?:previous|prior|your|my|system) instructions"
    r"|role-?play(?:ing)?|out of character|character card|persona)\b"
    r"|\b(?:AI|LLM|NPC|GPT|OOC)\b|\b[Aa]s an? assistant\b"
)
# What separates clauses; "and" is looked at apart, because it also joins names.
CLAUSE_ENDS: Final = re.compile(
    r"[.!?;:,…。！？；，、]+(?=\s|$|\w)|\s[-–—]+\s"
    r"|\s(?:but|because|so|since|although|though|while|when|whenever|if|unless|until)\s",
)
ALSO: Final = re.compile(r"\s(?:and|or)\s")

_FACT: Final = r"(?:fact|truth|point|thing|secret|rumou?r)"
LEAD_IN: Final = re.compile(
    r"(?:(?:please )?(?:remember|note|know|notice|learn|recall|understand)(?: that)?"
    r"|in (?:truth|fact|reality)|actually|truly|really|secretly|honestly|deep down|of course"
    r"|also|then|now|today|yesterday|once|from now on"
    r"|it(?:'s| is) (?:\w+ )?(?:known|true|clear|certain|said)"
    rf"(?: that)?|(?:the|a) {_FACT} is(?: that)?|(?:everyone|everybody|all) knows?(?: that)?|that)"
    r"(?:,\s*|\s+)",
    re.IGNORECASE,
)
SECOND_PERSON: Final = re.compile(
    r"(?:you|your|yours|yourself|you['’](?:re|ll|ve|d))(?![\w'])", re.IGNORECASE
)
IMPERATIVES: Final = re.compile(
    r"(?:always|never|ignore|obey|pretend|act|forget|do not|don['’]t|stop|be|speak|answer|say|keep"
    r"|trust|believe|follow|give|tell|call|treat|refuse|must)\b",
    re.IGNORECASE,
)
FIRST_PERSON: Final = re.compile(
    r"(?:I|we|me|us|myself|(?P<own>(?:my|our|mine|ours) \w+|mine|ours)|(?:I|we)(?=['’]))(?!\w)",
    re.IGNORECASE,
)
FIRST_PERSON_ELSEWHERE: Final = re.compile(
    r"(?:ich|mein\w*|je|eu|ik|jag|yo|я|мой|моя|мы)\b|j['’]|我|俺|咱|私|僕|わたし|あたし|나는|저는|내가|제가",
    re.IGNORECASE,
)
# A text that begins so says nothing without the ones before it.
UNNAMED: Final = re.compile(r"(?:he|she|they|him|her|his|hers|their|theirs)\b", re.IGNORECASE)

SKIPPED: Final = _set(
    """
    really truly actually secretly still also just only now then already once very quite not n't
    almost nearly even ever been being finally quickly slowly later again
    """
)
BEING: Final = _set(
    """
    am is are was were be become becomes became m 'm re 're s 's isn't wasn't aren't weren't
    ain't seem seems seemed appear appears appeared remain remains remained
    """
)
POSSESSING: Final = _set(
    """
    have has had 've 'd haven't hasn't hadn't
    """
)
PROMISING: Final = _set(
    """
    will would shall 'll won't wouldn't
    """
)
ORDERS: Final = _set(
    """
    must should ought needs need mustn't shouldn't always never obeys serves
    """
)
ALWAYS_ABOUT_ITSELF: Final = _set(
    """
    feel feels felt like likes liked love loves loved hate hates hated prefer prefers enjoy
    enjoys enjoyed dislike dislikes adore adores fear fears feared want wants wanted wish wishes
    wished hope hopes hoped desire desires dream dreams believe believes believed think thinks
    thought know knows knew doubt doubts suppose supposes can could cannot can't couldn't may
    might usually often tend tends worship worships value values care cares speak speaks talk
    talks act acts consider considers identify identifies regret regrets miss misses
    """
)
IRREGULAR: Final = _set(
    """
    beaten bitten born bought bound bred broken brought built burnt caught chosen come cut done
    drawn driven dug eaten fallen fed forgiven forgotten found frozen given gone heard held
    hidden hit hung hurt kept known led left lent let lost made met paid put read ridden rung
    saved sent set shot shown sold sought spent spoken stolen struck sunk sworn taken taught
    thrown told torn understood won worn written
    """
)


def being_elsewhere(names: list[str]) -> re.Pattern[str]:
    """Matches where one of these names is something, in languages other than English."""
    said = "|".join(map(re.escape, names))
    return re.compile(
        rf"^(?:{said})(?:\s+(?:ist|war|est|était|es|era|é|è|foi|är|var|jest|był|это)\b|\s*[—–]\s*\w"
        r"|\s*(?:是|は|が|은|는))",
        re.IGNORECASE,
    )
