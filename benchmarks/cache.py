"""Measure how much of a long chat a provider's prefix cache serves, for each layout.

    python benchmarks/cache.py [--turns 200] [--seed 20417] [--check]

For each layout, one scripted chat goes through the real `compose`. It has a system prompt of 2,000
tokens and 200 turns; a line has 15 to 60 tokens and a reply 40 to 140, all of synthetic words. A
token is 4 bytes of a message's canonical JSON, rounded up for each message. The simulated cache has
blocks of 16 tokens. A block is identified by its bytes and all bytes before it. Only full blocks
count, replies are cached as they were written, and nothing is evicted. `served` is the share of all
prompt tokens that were in the cache.

Then 240 NPCs of one game speak in turn, twelve turns each. A router sends their requests to eight
servers, by the session key or round robin. A server caches 160,000 tokens and evicts what was not
used for longest. For comparison there is one server that caches as much as all eight.

`--check` ends with status 1 in three cases: a layout serves less than it should; a prompt broke the
prefix of the one before without a declared reason; or routing by the session key serves 3 points
less than the single server.
"""

import argparse
import random
from collections import Counter, OrderedDict
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import count

from evennia_ai.engine.compose import compose
from evennia_ai.engine.history.compaction.extract import extract_summary
from evennia_ai.engine.history.compaction.planning import (
    CompactionPlan,
    CompactionRules,
    is_due,
    plan_compaction,
)
from evennia_ai.engine.inputs import ComposeRules, Inputs
from evennia_ai.engine.prompt.blocks import DynamicBlock
from evennia_ai.engine.prompt.budget import BudgetRules
from evennia_ai.engine.prompt.components import PromptComponent
from evennia_ai.engine.prompt.expansion import ComponentSet
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.messages import event_message, said
from evennia_ai.engine.prompt.notes import AuthorsNote, Notes
from evennia_ai.engine.prompt.persistent_texts import texts_left_in_history
from evennia_ai.engine.prompt.registry import with_statics
from evennia_ai.engine.prompt.tokens import TokenCounter
from evennia_ai.formats.lorebooks.books import read_book
from evennia_ai.services.llm.profiles import Endpoint

SEED = 20417
BYTES = 4
BLOCK = 16 * BYTES
SYSTEM_TOKENS, DYNAMIC_TOKENS, NOTE_TOKENS, LORE_TOKENS = 2_000, 300, 60, 80
USER_TOKENS, REPLY_TOKENS = (15, 60), (40, 140)
CHANGED_PERCENT = 20
WINDOW = 8_000
ENDLESS = 1_000_000
SERVERS, SERVER_TOKENS = 8, 160_000
NPCS, NPC_TURNS, GAME_TOKENS = 240, 12, 500
MOST_LOST = 3.0
"""The most percentage points that routing by session key may serve less than one server."""
TOPICS = 12

COUNTER = TokenCounter(
    "bench/4", "1", lambda text: -(-len(text.encode()) // BYTES), per_message=8, per_prompt=0
)


@dataclass(frozen=True, kw_only=True)
class Layout:
    """One layout of the chat, and the least percentage that its cache should serve, or None."""

    title: str
    floor: float | None = None
    rules: ComposeRules = field(
        default_factory=lambda: ComposeRules(
            budget=BudgetRules(limit_tokens=ENDLESS), counter=COUNTER
        )
    )
    facts_percent: int = 0
    note: AuthorsNote | None = None
    scene: bool = False
    lore: str = ""
    compaction: CompactionRules | None = None


class Script:
    """The texts of one chat, as every layout uses them."""

    def __init__(self, turns, seed):
        rng = random.Random(seed)
        self.system = prose(rng, SYSTEM_TOKENS)
        self.note = prose(rng, NOTE_TOKENS)
        self.topics = [f"topic{number}" for number in range(TOPICS)]
        self.lore = [prose(rng, LORE_TOKENS) for _ in self.topics]
        self.turns = []
        for _ in range(turns):
            about = f" {rng.choice(self.topics)}" if rng.random() < 0.3 else ""
            user = prose(rng, rng.randint(*USER_TOKENS)) + about
            reply = prose(rng, rng.randint(*REPLY_TOKENS))
            self.turns.append((user, reply, prose(rng, DYNAMIC_TOKENS), rng.randrange(100)))


def prose(rng, tokens):
    """Return sentences of three-letter words. Each word with the space after it is one token."""
    words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=3)) for _ in range(tokens)]
    for at in range(8, tokens, 9):
        words[at] = words[at][:2] + "."
    return " ".join(words)


class BlockCache:
    """A prefix cache. A block is identified by its bytes and by all bytes before it."""

    def __init__(self):
        self.known = set()

    def served(self, tokens):
        """Return how many tokens of a prompt are in the cache."""
        blocks = 0
        for name in chained(tokens):
            if name not in self.known:
                break
            blocks += 1
        return blocks * BLOCK // BYTES

    def keep(self, tokens):
        self.known.update(chained(tokens))


class Server:
    """A server whose cache evicts what was not used for longest."""

    def __init__(self, tokens):
        self.most = tokens * BYTES // BLOCK
        self.known = OrderedDict()

    def answered(self, prompt, answer):
        """Return how many tokens of the prompt were cached, then cache it with its answer."""
        blocks, goes_on = 0, True
        for name in chained(prompt + answer):
            goes_on = goes_on and name in self.known
            blocks += goes_on
            self.known[name] = None
            self.known.move_to_end(name)
        while len(self.known) > self.most:
            self.known.popitem(last=False)
        return min(blocks * BLOCK, len(prompt)) // BYTES


def chained(data):
    """Yield a key for each full block, which also covers the blocks before it."""
    name = b""
    for at in range(0, len(data) - BLOCK + 1, BLOCK):
        name = blake2b(name + data[at : at + BLOCK], digest_size=16).digest()
        yield name


def tokens_of(messages):
    """Return the messages as bytes, each padded to whole tokens."""
    return b"".join(wire + b" " * (-len(wire) % BYTES) for wire in (m.wire() for m in messages))


class Chat:
    """A chat in one layout, simulated turn by turn."""

    def __init__(self, layout, script):
        self.layout = layout
        self.history = History()
        self.older = None
        self.goes_on = True
        self.facts = ""
        self.cache = BlockCache()
        self.sizes, self.hits, self.reasons = [], [], Counter()
        parts = [PromptComponent(id=0, key="system_prompt", content=script.system, required=True)]
        if layout.scene:
            parts.append(PromptComponent(id=1501, key="scene", content="{{facts}}", volatile=True))
        self.inputs = Inputs(
            components=ComponentSet(with_statics(parts)),
            rules=layout.rules,
            notes=Notes([replace(layout.note, content=script.note)] if layout.note else []),
            books=(the_book(script, layout.lore),) if layout.lore else (),
        )

    def turn(self, user, reply, facts, chance):
        """Answer `user`, and record how much of the prompt was cached."""
        layout = self.layout
        if chance < layout.facts_percent or not self.facts:
            self.facts = facts if layout.facts_percent else ""
        self.compact()
        is_block = self.facts and not layout.scene
        older = self.older
        prompt = compose(
            replace(
                self.inputs,
                history=self.history,
                event=event_message(user, name="Anna"),
                blocks=(DynamicBlock(key="facts", text=self.facts),) if is_block else (),
                values={"facts": self.facts},
                cut=older.cut if older and self.goes_on else 0,
                anchors=older.anchors if older and self.goes_on else {},
            )
        )
        answer = said("assistant", reply)
        self.account(prompt, answer)
        self.history = self.history.appended(
            *texts_left_in_history(prompt.messages), said("user", user, name="Anna"), answer
        )
        self.older, self.goes_on = prompt, True

    def account(self, prompt, answer):
        data = tokens_of(prompt.messages)
        self.sizes.append(len(data) // BYTES)
        self.hits.append(self.cache.served(data))
        self.cache.keep(data + tokens_of([answer]))
        if self.older is not None:
            self.reasons[prompt.account(self.older.sent).reason] += 1

    def compact(self):
        """Replace the older messages by a summary if the history is due for compaction."""
        rules = self.layout.compaction
        if rules is None or self.older is None:
            return
        history, older = self.history, self.older
        limit = older.limit_tokens
        other = older.tokens - older.fitted.history_tokens
        spent = history.tokens_from(history.earlier, counter=COUNTER)
        if not is_due(spent, limit_tokens=limit, rules=rules, other_tokens=other):
            return
        made = plan_compaction(
            history, rules=rules, counter=COUNTER, limit_tokens=limit, other_tokens=other
        )
        if not isinstance(made, CompactionPlan):
            raise SystemExit(f"{self.layout.title}: {made.reason}")
        summary = extract_summary(made, npc_name="Maren", counter=COUNTER)
        self.history = History([said("user", summary), *made.tail], segment=history.segment + 1)
        self.goes_on = False


def the_book(script, mode):
    """Return a lorebook with one entry per topic."""
    entries = [
        {"keys": [topic], "content": text, "enabled": True, "insertion_order": number}
        for number, (topic, text) in enumerate(zip(script.topics, script.lore, strict=True))
    ]
    return read_book({"entries": entries}, label="topics", mode=mode)


def rules(limit=ENDLESS, keep_percent=60, **more):
    budget = BudgetRules(limit_tokens=limit, keep_percent=keep_percent)
    return ComposeRules(budget=budget, counter=COUNTER, **more)


def a_note(mode, **more):
    return AuthorsNote(content="", depth=4, mode=mode, **more)


SUMMARY = CompactionRules(keep_messages=10_000, keep_tokens=2_000, summary_tokens=500)
LAYOUTS = (
    Layout(title="append-only", floor=99),
    Layout(title="facts, latest, new every turn", floor=96, facts_percent=100),
    Layout(
        title="facts, on change, new in 20 % of the turns",
        floor=98,
        facts_percent=CHANGED_PERCENT,
        rules=rules(blocks="on_change"),
    ),
    Layout(
        title="facts, all, new every turn",
        floor=98,
        facts_percent=100,
        rules=rules(blocks="all"),
    ),
    Layout(title="note at depth 4, floating", floor=96, note=a_note("floating")),
    Layout(title="note at depth 4, anchored", floor=98, note=a_note("anchored")),
    Layout(title="note at the tail, every 10", floor=99, note=a_note("tail", every=10)),
    Layout(title="lore, floating", lore="floating"),
    Layout(title="lore, frozen", floor=98, lore="frozen"),
    Layout(title="8k window, step trimming", floor=95, rules=rules(WINDOW)),
    Layout(title="8k window, compaction", floor=95, rules=rules(WINDOW), compaction=SUMMARY),
    Layout(
        title="8k window, steps, anchored note",
        floor=93,
        rules=rules(WINDOW),
        note=a_note("anchored"),
    ),
    Layout(
        title="classic, facts at 1501, new every turn",
        rules=rules(layout="classic"),
        facts_percent=100,
        scene=True,
    ),
    Layout(title="8k window, sliding trim", rules=rules(WINDOW, keep_percent=100)),
)


def played(layout, script, kind=Chat):
    chat = kind(layout, script)
    for turn in script.turns:
        chat.turn(*turn)
    return chat


class Talk(Chat):
    """A chat that keeps all its requests: each prompt with its answer."""

    def __init__(self, layout, script):
        super().__init__(layout, script)
        self.asked = []

    def account(self, prompt, answer):
        self.asked.append((tokens_of(prompt.messages), tokens_of([answer])))


def game_requests(seed):
    """Yield the requests of all NPCs of a game in turn: session key, prompt and answer."""
    there = Endpoint(name="router", base_url="http://127.0.0.1", model="any", game_id=f"{seed}")
    rng, talks = random.Random(seed), {}
    rules_of_the_game = prose(rng, GAME_TOKENS)
    for number in range(NPCS):
        script = Script(NPC_TURNS, seed + number)
        script.system = f"{rules_of_the_game} {script.system[GAME_TOKENS * BYTES :]}"
        talks[there.session_key(f"npc-{number}")] = played(LAYOUTS[0], script, Talk).asked
    for turn in range(NPC_TURNS):
        for key in rng.sample(sorted(talks), NPCS):
            yield key, *talks[key][turn]


def routed(requests, *, servers, choose):
    """Return the percentage of all tokens that were in a cache."""
    total = hits = 0
    for key, prompt, answer in requests:
        total += len(prompt) // BYTES
        hits += servers[choose(key)].answered(prompt, answer)
    return 100 * hits / total


def report_routes(seed):
    """Print three lines about servers behind a router.

    Return True if the session key is good enough.
    """
    requests, turns = list(game_requests(seed)), count()
    ways = {
        "one server": (1, lambda _: 0),
        "eight servers, by session key": (SERVERS, lambda key: int(key, 16) % SERVERS),
        "eight servers, round robin": (SERVERS, lambda _: next(turns) % SERVERS),
    }
    served = {}
    print(f"\n{NPCS} NPCs, {NPC_TURNS} turns each, {SERVERS * SERVER_TOKENS} tokens in all caches")
    for title, (number, choose) in ways.items():
        servers = [Server(SERVERS * SERVER_TOKENS // number) for _ in range(number)]
        served[title] = routed(requests, servers=servers, choose=choose)
        print(f"{title:42} {served[title]:15.1f}")
    one, by_key, _ = served.values()
    return by_key >= one - MOST_LOST


def report(layout, chat):
    """Print one line about a layout. Return True if it is good enough."""
    total, hits = sum(chat.sizes), sum(chat.hits)
    served = 100 * hits / total
    missed = [size - hit for size, hit in zip(chat.sizes, chat.hits, strict=True)][1:]
    is_met = layout.floor is None or served >= layout.floor
    floor = "" if layout.floor is None else f"{layout.floor:g}"
    reasons = ", ".join(f"{reason} {times}" for reason, times in chat.reasons.most_common())
    print(
        f"{layout.title:42} {total / len(chat.sizes):7.0f} {served:7.1f} {floor:>5}"
        f" {sum(missed) / max(len(missed), 1):8.0f} {max(missed, default=0):6}  {reasons}"
        f"{'' if is_met else '  MISSED'}"
    )
    return is_met and not chat.reasons["undeclared"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument(
        "--check", action="store_true", help="end with status 1 if a layout serves too little"
    )
    options = parser.parse_args()
    script = Script(options.turns, options.seed)
    print(f"{options.turns} turns, seed {options.seed}; tokens of {BYTES} bytes, blocks of 16")
    print(
        f"{'layout':42} {'prompt':>7} {'served':>7} {'floor':>5} {'prefill':>8} {'worst':>6}"
        "  prefix of the prompt before"
    )
    is_met = [report(layout, played(layout, script)) for layout in LAYOUTS]
    is_met.append(report_routes(options.seed))
    if options.check and not all(is_met):
        raise SystemExit(
            "a layout served too little, or broke the prefix without a declared reason"
        )


if __name__ == "__main__":
    main()
