"""All settings of a game, each declared once: type, limits, check, default, hint, description.

The text under a setting is its row in docs/reference/settings.md.
`evennia_ai.services.settings.conf` reads the game's settings into a `Conf`, and finds
contradictions. `given_profiles` and `given_roles` are profiles and roles as the settings have them;
`profiles` and `model_roles` are derived from them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import Field

from evennia_ai.engine.foreign.fields import UNBOUNDED, describe_field, strict_model
from evennia_ai.engine.history.compaction.planning import (
    CompactionSettings,
    read_compaction_settings,
)
from evennia_ai.engine.knowledge.settings import LorekeeperSettings, read_lorekeeper_settings
from evennia_ai.engine.lorebook.rules import ActivationRules
from evennia_ai.engine.memory.recalling import MemorySettings, read_memory_settings
from evennia_ai.engine.prompt.fragments import Layout
from evennia_ai.engine.prompt.persistent_texts import BlocksMode
from evennia_ai.formats.cards.limits import CardLimits
from evennia_ai.services.llm.profiles import (
    DEFAULT,
    IDLE_SECONDS,
    MODEL_ROLES,
    SUMMARISER,
    Given,
    ModelProfile,
    ModelRole,
    is_open,
    profiles_of,
    read_profiles,
    read_roles,
)
from evennia_ai.services.llm.quotas import Quotas, read_quotas
from evennia_ai.services.net.secrets import SecretText
from evennia_ai.services.settings import kinds
from evennia_ai.services.settings.kinds import Setting, read_by
from evennia_ai.services.settings.workers import WorkerSettings, read_workers


@dataclass(frozen=True, slots=True, kw_only=True)
class Conf:
    """All settings of evennia_ai, checked. Folders are absolute.

    Without the address of a model, the offline responder answers.
    """

    api_keys: Mapping[str, SecretText] = field(default_factory=dict)
    """The keys in the environment, by the names of their variables."""
    base_url: Annotated[
        kinds.Address,
        Setting(
            "E001",
            "",
            'an http or https address without a name, a password or a query, or ""',
            from_environment=True,
            is_shown=False,
        ),
    ]
    """address of an OpenAI-compatible server, such as `http://localhost:8080/v1`; empty: the
    offline responder answers"""
    model: Annotated[
        str, Setting("E002", "", "the name of a model, as text", from_environment=True)
    ]
    """the model's name on that server"""
    api_key_env: Annotated[kinds.Variable, Setting("E003", "EVENNIA_AI_API_KEY")]
    """the name of the environment variable that holds the key"""
    model_timeout_seconds: Annotated[kinds.SomeSeconds, Setting("E004", 60.0)]
    """how long a reply may take, waiting and retries included"""
    context_tokens: Annotated[int, Field(ge=256, le=UNBOUNDED), Setting("E005", 8192)]
    """the model's context; a prompt gets what the reply leaves of it"""
    reply_tokens: Annotated[kinds.Count, Setting("E006", 400)]
    """room for the reply"""
    max_concurrent_calls: Annotated[int, Field(ge=1, le=1000), Setting("E008", 4)]
    """requests to one model at one time, and turns that wait for it"""
    max_concurrent_turns: Annotated[int, Field(ge=1, le=10_000), Setting("E090", 32)]
    """turns of the whole game at one time, whichever models they wait for"""
    given_profiles: Annotated[
        Mapping[str, Given],
        read_by(read_profiles, name="PROFILES"),
        Setting(
            "E026",
            {},
            'a dictionary of profiles, such as {"cheap": {"model": "a-small-model"}}',
            name="profiles",
        ),
    ]
    """models under a name, see below"""
    given_roles: Annotated[
        Mapping[ModelRole, tuple[str, ...]],
        read_by(read_roles, name="MODEL_ROLES"),
        Setting(
            "E027",
            {},
            'a dictionary, such as {"speaker": ["default", "cheap"], "decider": ["cheap"]}',
            name="model_roles",
        ),
    ]
    """which of them are asked for what, see below"""
    session_header: Annotated[kinds.SessionHeader, Setting("E085", "x-session-id")]
    """the header in which a router finds [whose request it is](#routers); `""`: none"""
    summary_model: Annotated[
        str,
        Setting(
            "E023", "", 'the name of a model at the same address, or "" for the one that answers'
        ),
    ]
    """the model that is asked for summaries of long histories, at the address of `default`;
    empty: the role `summariser` says"""
    game_folder: Path
    layout: Annotated[Layout, Setting("E007", "cache")]
    """`"cache"`: what changes from request to request stands behind the history; `"classic"`:
    every component at its ID"""
    queue_limit: Annotated[kinds.Count, Setting("E009", 128)]
    """how much may wait for one NPC"""
    speaker_limit: Annotated[kinds.Count, Setting("E081", 8)]
    """how much of that may be of [one speaker](../build/npcs.md)"""
    hop_limit: Annotated[kinds.WholeNumber, Setting("E010", 3)]
    """NPC replies in a row before NPCs fall silent with each other"""
    line_npcs: Annotated[kinds.Count, Setting("E082", 8)]
    """how many NPCs may answer what [one line](../build/npcs.md) set off"""
    line_calls: Annotated[kinds.Count, Setting("E083", 32)]
    """how many calls of models one line may set off"""
    cooldown_seconds: Annotated[kinds.Seconds, Setting("E011", 1.0)]
    """rest of an NPC between two turns"""
    engagement_seconds: Annotated[kinds.Seconds, Setting("E012", 60.0)]
    """how long an NPC stays in conversation with somebody who does not call it by name"""
    refresh_seconds: Annotated[kinds.SomeSeconds, Setting("E013", 30.0)]
    """how often it is looked whether another process changed components, cards, lorebooks or
    notes"""
    fallback_line: Annotated[
        kinds.Line, Setting("E014", "I am lost in thought just now. Ask me again in a moment.")
    ]
    """said where a model gave no reply; an NPC's own `fallback_line` wins"""
    unknown_line: Annotated[kinds.Line, Setting("E122", "I do not know anything about that.")]
    """said by the [offline responder](../run/offline.md) where nothing that the NPC knows
    answers"""
    card_folder: Annotated[kinds.Folder, Setting("E015", "world/cards")]
    """where `card/import` and `ai/import` find files and exports go; a relative folder counts
    from the game's"""
    preset_folder: Annotated[kinds.Folder, Setting("E093", "world/presets")]
    """where `preset/import` finds files and `preset/export` puts them; a relative folder counts
    from the game's"""
    knowledge_folder: Annotated[kinds.Folder, Setting("E060", "world/knowledge")]
    """where `kb/import` finds [folders of pages](../build/knowledge.md#folders-of-pages); a
    relative folder counts from the game's"""
    max_source_characters: Annotated[int, Field(ge=1000, le=UNBOUNDED), Setting("E016", 4_000_000)]
    """the longest lorebook or preset that is stored"""
    messages_in_memory: Annotated[int, Field(ge=1000, le=UNBOUNDED), Setting("E086", 200_000)]
    """how many messages of histories are held in memory, all conversations together, see
    [below](#memory-of-the-server)"""
    lore: Annotated[
        ActivationRules,
        read_by(kinds.read_lore),
        Setting(
            "E019",
            kinds.GAME_LORE,
            "a dictionary with rules of lore, as settings.lore of a scenario has them",
        ),
    ]
    """how lore is activated"""
    assembly: Annotated[
        Mapping[str, Any],
        read_by(kinds.read_assembly_written),
        Setting(
            "E089",
            {},
            "a dictionary with rules of an assembly, as settings.assembly of a scenario has them",
        ),
    ]
    """how a prompt is put together, as [a scenario](scenarios.md#putting-a-prompt-together) says
    it"""
    lore_facts: Annotated[
        kinds.Paths,
        Setting(
            "E020", [], 'a list of dotted paths of functions, such as ["world.facts.of_the_tide"]'
        ),
    ]
    """functions of your game that tell lore more facts"""
    card_limits: Annotated[
        CardLimits,
        read_by(kinds.read_card_limits),
        Setting("E021", {}, 'a dictionary of limits, such as {"file_bytes": 8388608}'),
    ]
    """how large a card's file may be, see below"""
    post_history_depth: Annotated[
        kinds.WholeNumber, Setting("E068", 4, "a whole number of messages, 0 or more")
    ]
    """how many messages follow a card's `post_history_instructions` where it has no grant
    `after_history`; 0: they end the history"""
    keep_turn_days: Annotated[
        kinds.WholeNumber, Setting("E022", 0, "a whole number of days, 0 to keep everything")
    ]
    """after how many days without a word a conversation is erased, see below; `0` keeps all"""
    compaction: Annotated[
        CompactionSettings,
        read_by(read_compaction_settings),
        Setting("E024", {}, 'a dictionary, such as {"by": "extract", "turn_percent": 90}'),
    ]
    """when and how long histories are summarised, see below"""
    dynamic_block: Annotated[BlocksMode, Setting("E025", "latest")]
    """what becomes of the facts of a prompt, see below"""
    npc_typeclass: Annotated[kinds.DottedPath, Setting("E088", "evennia_ai.typeclasses.AINPC")]
    """the typeclass of an NPC that `card/spawn` makes"""
    hop_seconds: Annotated[kinds.Seconds, Setting("E036", 60.0)]
    """how long NPCs answer each other without a person saying anything"""
    thinking_seconds: Annotated[
        kinds.Seconds, Setting("E037", 4.0, "a number of seconds, 0 for never")
    ]
    """after how long an NPC shows that it still thinks about its answer; `0`: never"""
    thinking_line: Annotated[kinds.Line, Setting("E038", "thinks it over.")]
    """what it then does; an NPC's own `thinking` wins"""
    limits: Annotated[
        Quotas,
        read_by(read_quotas),
        Setting("E042", {}, 'a dictionary of limits, such as {"player": {"calls_per_minute": 12}}'),
    ]
    """calls and tokens that players, NPCs and the game may use, see
    [watching.md](../run/watching.md#limits)"""
    limit_line: Annotated[kinds.Line, Setting("E043", "*raises a hand: enough talk for now.*")]
    """what an NPC says, or between asterisks does, when a limit is reached"""
    lost_line: Annotated[
        kinds.Line, Setting("E120", "lost the thread and missed some of what you said.")
    ]
    """what an NPC does, seen by the speaker alone and once a minute at most, when a line of theirs
    [goes unanswered](../build/npcs.md); `""`: nothing"""
    stopped_line: Annotated[kinds.Line, Setting("E121", "stands still and does not answer.")]
    """the same when somebody speaks to an NPC while `ai/stopall` holds; `""`: nothing"""
    keep_call_days: Annotated[kinds.Count, Setting("E044", 30, "a whole number of days from 1 on")]
    """after how many days the calls of a day are summed up, and it is forgotten whose words
    they answered"""
    log_llm_requests: Annotated[
        kinds.Logging,
        Setting(
            "E045",
            False,
            'True, False or "full"',
            from_environment=True,
            variable="AI_LOG_LLM_REQUESTS",
        ),
    ]
    """`True`: each request and reply is a line of the log, with the first words of its texts;
    `"full"`: with all of them; see [watching.md](../run/watching.md#the-request-log)"""
    metrics_port: Annotated[
        int, Field(ge=0, le=65535), Setting("E046", 0, "the number of a port, 0 for none")
    ]
    """the port on this machine where Prometheus finds metrics, `0` for none; see
    [watching.md](../run/watching.md#metrics)"""
    slow_ms: Annotated[
        kinds.WholeNumber, Setting("E084", 0, "a whole number of milliseconds, 0 for never")
    ]
    """how long one thing may hold everybody up before the log says what it is; `0`: nothing is
    said; see [watching.md](../run/watching.md#what-holds-the-game-up)"""
    traces: Annotated[
        kinds.Tracing,
        read_by(kinds.read_tracing),
        Setting("E047", {}, 'a dictionary, such as {"to": "world.traces.exporter"}'),
    ]
    """where traces go, see [watching.md](../run/watching.md#traces)"""
    memory: Annotated[
        MemorySettings,
        read_by(read_memory_settings),
        Setting("E048", {}, 'a dictionary, such as {"most": 8, "share_percent": 5}'),
    ]
    """what NPCs recall, how much they keep and when they learn by themselves, see
    [memory.md](../build/memory.md#settings)"""
    lorekeeper: Annotated[
        LorekeeperSettings,
        read_by(read_lorekeeper_settings),
        Setting("E066", {}, 'a dictionary, such as {"base": "harbour", "budget_tokens": 8000}'),
    ]
    """for which base builders' pages are written and how much the generator is shown, see
    [lorekeeper.md](../build/lorekeeper.md#settings)"""
    tools: Annotated[
        kinds.Paths,
        Setting("E052", [], 'a list of dotted paths of classes, such as ["world.tools.Ring"]'),
    ]
    """classes of your game that are tools of NPCs, see
    [tools.md](../build/tools.md#a-tool-of-your-own)"""
    use_item: Annotated[
        kinds.PathOrNone,
        Setting("E053", "", 'the dotted path of a function, such as "world.tools.use", or ""'),
    ]
    """a function of your game that uses things for NPCs, see
    [tools.md](../build/tools.md#using-things)"""
    writings: Annotated[
        kinds.WritingLimits,
        read_by(kinds.read_writing_limits),
        Setting("E070", {}, 'a dictionary, such as {"characters": 1000, "most": 10, "a_day": 3}'),
    ]
    """how much NPCs may write, see [tools.md](../build/tools.md#letters-and-books)"""
    tick_alone: Annotated[bool, Setting("E055", False)]
    """`True`: NPCs with `tick_seconds` act on their own also where no player sees it, see
    [npcs.md](../build/npcs.md#ticks)"""
    knowledge_wikis: Annotated[
        kinds.Wikis,
        Setting(
            "E056",
            {},
            'a dictionary, such as {"harbour": {"api": "https://wiki.example/w/api.php"}}',
        ),
    ]
    """the MediaWikis that are knowledge bases, by the keys of the bases, see
    [wiki.md](../build/wiki.md)"""
    knowledge_wikipedia: Annotated[
        kinds.Address,
        Setting(
            "E057",
            "",
            'an address such as "https://en.wikipedia.org/w/api.php", or "" for none',
            is_shown=False,
        ),
    ]
    """the API of the Wikipedia that the lorekeeper may look things up in, such as
    `"https://en.wikipedia.org/w/api.php"`; `""`: none is ever asked"""
    knowledge_vault: Annotated[bool, Setting("E058", True)]
    """`False`: what a second model reads of restricted bases is kept nowhere, see
    [restricted-knowledge.md](../build/restricted-knowledge.md#the-vault)"""
    knowledge_budget: Annotated[
        kinds.Budget,
        Setting("E059", {}, 'a dictionary, such as {"calls": 10, "free": 5, "minutes": 30}'),
    ]
    """how often an NPC may look something up, see
    [restricted-knowledge.md](../build/restricted-knowledge.md#how-often)"""
    knowledge_languages: Annotated[
        kinds.SomeLanguages,
        Setting(
            "E087",
            ["en", "ru"],
            'a list of codes, such as ["de", "en", "ru"]; Chinese, Japanese and Korean need none',
        ),
    ]
    """in which languages pages and memories are found by [other forms of their
    words](../build/knowledge.md#how-pages-are-found); after a change `evennia migrate`"""
    knowledge_embeddings: Annotated[bool, Setting("E061", False)]
    """`True`: pages in the game's database are found by [what they
    mean](../build/knowledge.md#how-pages-are-found) as well as by their words; needs the extra
    `embeddings` and a model"""
    embeddings_profile: Annotated[str, Setting("E091", "", "the name of a profile, as text")]
    """the profile whose server turns texts into vectors (`/embeddings`), where texts are found by
    meaning; `""`: the packaged model does"""
    context_providers: Annotated[
        kinds.NamesOrPaths,
        Setting(
            "E063",
            kinds.USUAL_PROVIDERS,
            'a list of names and dotted paths, such as ["speaker", "world.context.weather"]',
        ),
    ]
    """what tells NPCs the facts of the moment, in this order, see
    [dynamic-context.md](../extend/dynamic-context.md)"""
    ooc_marks: Annotated[
        kinds.Texts,
        Setting("E123", ["((", "(ooc", "[ooc", "ooc:", "ooc "], 'a list of texts, such as ["(("]'),
    ]
    """how a line begins that is said out of character: NPCs do not hear it"""
    persona_characters: Annotated[kinds.WholeNumber, Setting("E095", 1000)]
    """the longest [persona](../play/personas.md) a player may write; 0: NPCs are told of none"""
    elsewhere_tokens: Annotated[
        kinds.WholeNumber, Setting("E069", 200, "a whole number of tokens, 0 for nothing")
    ]
    """how much of a prompt tells what an NPC [lived through
    elsewhere](../extend/dynamic-context.md#what-an-npc-lived-through-elsewhere); 0: nothing"""
    workers: Annotated[
        WorkerSettings,
        read_by(read_workers),
        Setting(
            "E097",
            {"queue": "inprocess"},
            'a dictionary, such as {"queue": "procrastinate", "caps": {"observe": 200}}',
        ),
    ]
    """`{"queue": "procrastinate"}`: what NPCs do besides speaking is done by
    [workers](../run/workers.md), on this machine or others"""
    time_suffix: Annotated[
        kinds.TimeSuffix, Setting("E064", "game", '"real", "game" or "" for none')
    ]
    """what is said to NPCs ends with a line that has date and minute, of the game's clock or
    (`"real"`) of the world's; `""`: no such line"""

    def __post_init__(self) -> None:
        recall = replace(self.memory.recall, languages=self.knowledge_languages)
        object.__setattr__(self, "memory", replace(self.memory, recall=recall))

    @property
    def profiles(self) -> dict[str, ModelProfile]:
        """All profiles of models by name. `default` always exists."""
        found = profiles_of(self.given_profiles, game=self._default_profile())
        if self.summary_model:
            summariser = replace(found[DEFAULT], name=SUMMARISER, model=self.summary_model)
            found[SUMMARISER] = summariser
        return found

    @property
    def model_roles(self) -> dict[ModelRole, tuple[str, ...]]:
        """The names of the profiles for each role, in the order in which they are tried.

        A role without a setting uses the profiles of the speaker.
        """
        speaker = self.given_roles.get("speaker", (DEFAULT,))
        found = {role: self.given_roles.get(role, speaker) for role in MODEL_ROLES}
        if self.summary_model:
            found[SUMMARISER] = (SUMMARISER,)
        return found

    def key_of(self, profile: ModelProfile) -> SecretText:
        """Return the key of a profile. It is empty if there is none."""
        return self.api_keys.get(profile.api_key_env, SecretText())

    def shows_key_of(self, profile: ModelProfile) -> bool:
        """True if the key of a profile is sent unencrypted to another machine."""
        return bool(self.key_of(profile)) and is_open(profile.base_url)

    @property
    def limit_tokens(self) -> int:
        """The most tokens of a prompt for the model with which NPCs speak by default."""
        return self.profiles[self.model_roles["speaker"][0]].limit_tokens

    @property
    def is_offline(self) -> bool:
        """True if NPCs speak without any model."""
        found = self.profiles
        return all(found[name].client == "offline" for name in self.model_roles["speaker"])

    def _default_profile(self) -> ModelProfile:
        """Return the profile made from the settings without a profile's name."""
        return ModelProfile(
            name=DEFAULT,
            client="openai" if self.base_url else "offline",
            base_url=self.base_url,
            model=self.model if self.base_url else "",
            api_key_env=self.api_key_env,
            reply_tokens=self.reply_tokens,
            context_tokens=self.context_tokens,
            timeout_seconds=self.model_timeout_seconds,
            idle_seconds=min(IDLE_SECONDS, self.model_timeout_seconds),
            max_concurrent=self.max_concurrent_calls,
        )


SETTINGS: Final[Mapping[str, Setting]] = {
    field: replace(said, name=said.name or field, wanted=said.wanted or describe_field(one))
    for field, one in strict_model(Conf).model_fields.items()
    for said in one.metadata
    if isinstance(said, Setting)
}
"""The settings, by the names of their fields in `Conf`."""
