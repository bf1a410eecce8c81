"""Reports: the account of a turn, from the prompt in memory or from what is stored of it."""

from evennia_ai.history.turns import messages_of
from evennia_ai.prompt.expansion import LAYOUTS, Layout
from evennia_ai.prompt.report import Report, ReportMessage
from evennia_ai.store.conversations import records
from evennia_ai.store.turns import StoredTurn


def stored_report(turn: StoredTurn) -> Report:
    """The report of a turn of any time, rebuilt from its manifest and the records.

    ReplayError: what is stored does not give the prompt that was sent.
    """
    manifest = turn.manifest
    messages = messages_of(manifest, records(manifest.record_ids))
    layout: Layout = next(known for known in LAYOUTS if known == manifest.layout)
    return Report(
        messages=tuple(
            ReportMessage(
                role=message.role,
                content=message.content,
                name=message.name,
                block=message.block,
                injected=message.injected,
                parts=message.parts,
                tokens=kept.tokens,
            )
            for message, kept in zip(messages, manifest.messages, strict=True)
        ),
        verdicts=manifest.verdicts,
        tokens=manifest.tokens,
        limit=manifest.limit_tokens,
        by_origin=manifest.by_origin,
        breakpoints=manifest.breakpoints,
        stable_tokens=manifest.stable_tokens,
        sha256=manifest.sha256,
        layout=layout,
        counter=manifest.counter,
    )
