"""All settings of a game, each declared once: type, limits, check, default, hint, description.

The text under each setting is printed in docs/reference/settings.md.
`evennia_ai.services.settings.conf` reads the game's settings into a `Conf` and finds
contradictions. `given_profiles` and `given_roles` contain profiles and roles as the settings have
them. `profiles` and `model_roles` are derived from these.
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
from evennia_ai.engine.text.phrases import translatable
from evennia_ai.formats.cards.limits import CardLimits
from evennia_ai.services.llm.odd_replies import OddReplies
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
    """All settings of evennia_ai after they were checked. Folders are absolute.

    Without the address of a model, the offline responder answers.
    """

    api_keys: Mapping[str, SecretText] = field(default_factory=dict)
    """The keys that were found in the environment, by the names of their variables."""
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
    """The address of an OpenAI-compatible server, such as `http://localhost:8080/v1`.

    If empty, the offline responder answers.
    """
    model: Annotated[
        str, Setting("E002", "", "the name of a model, as text", from_environment=True)
    ]
    """The name of the model on that server."""
    api_key_env: Annotated[kinds.Variable, Setting("E003", "EVENNIA_AI_API_KEY")]
    """The name of the environment variable that contains the key."""
    model_timeout_seconds: Annotated[kinds.SomeSeconds, Setting("E004", 60.0)]
    """The longest time that a reply may take, with waiting and retries."""
    context_tokens: Annotated[int, Field(ge=256, le=UNBOUNDED), Setting("E005", 8192)]
    """The size of the model's context in tokens. A prompt gets what `REPLY_TOKENS` leaves of it."""
    reply_tokens: Annotated[kinds.Count, Setting("E006", 400)]
    """The tokens that are reserved for the reply."""
    max_concurrent_calls: Annotated[int, Field(ge=1, le=1000), Setting("E008", 4)]
    """How many requests to one model may run at once, and how many turns may wait for it."""
    max_concurrent_turns: Annotated[int, Field(ge=1, le=10_000), Setting("E090", 32)]
    """How many turns of the whole game may run at the same time, whatever models they use."""
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
    """Models under the names of profiles; see below."""
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
    """Which profiles are used for which role; see below."""
    session_header: Annotated[kinds.SessionHeader, Setting("E085", "x-session-id")]
    """The header by which a router recognizes [whose request it is](#routers). `""`: no header."""
    summary_model: Annotated[
        str,
        Setting(
            "E023", "", 'the name of a model at the same address, or "" for the one that answers'
        ),
    ]
    """The model that summarises long histories, at the address of the profile `default`.

    If empty, the role `summariser` in `MODEL_ROLES` decides.
    """
    game_folder: Path
    layout: Annotated[Layout, Setting("E007", "cache")]
    """Where a prompt puts texts that change from request to request.

    `"cache"`: after the history. `"classic"`: every component at the place of its ID.
    """
    queue_limit: Annotated[kinds.Count, Setting("E009", 128)]
    """How many events may wait for one NPC."""
    speaker_limit: Annotated[kinds.Count, Setting("E081", 8)]
    """How many of the waiting events of an NPC may come from [one speaker](../build/npcs.md)."""
    hop_limit: Annotated[kinds.WholeNumber, Setting("E010", 3)]
    """After how many replies in a row NPCs stop answering each other."""
    line_npcs: Annotated[kinds.Count, Setting("E082", 8)]
    """How many NPCs may answer after [one line](../build/npcs.md) of a player."""
    line_calls: Annotated[kinds.Count, Setting("E083", 32)]
    """How many model calls one line of a player may cause."""
    cooldown_seconds: Annotated[kinds.Seconds, Setting("E011", 1.0)]
    """The least time between two turns of an NPC."""
    engagement_seconds: Annotated[kinds.Seconds, Setting("E012", 60.0)]
    """How long an NPC goes on answering a person who no longer calls it by name."""
    refresh_seconds: Annotated[kinds.SomeSeconds, Setting("E013", 30.0)]
    """How often the game looks whether another process changed components, cards, books or notes.
    """
    language: Annotated[
        kinds.LanguageOrNone, Setting("E148", "", 'the code of a language, such as "de", or ""')
    ]
    """The language that NPCs speak and in which players read the lines of evennia_ai; see
    [languages.md](../extend/languages.md).

    `""`: models are told no language, and players read the language of `LANGUAGE_CODE`.
    """
    fallback_line: Annotated[
        kinds.Line,
        Setting("E014", translatable("I am lost in thought just now. Ask me again in a moment.")),
    ]
    """What an NPC says if no model gives a reply.

    The NPC's own `fallback_line` takes precedence.
    """
    unknown_line: Annotated[
        kinds.Line, Setting("E122", translatable("I do not know anything about that."))
    ]
    """What the [offline responder](../run/offline.md) says if nothing that the NPC knows answers
    the question.
    """
    card_folder: Annotated[kinds.Folder, Setting("E015", "world/cards")]
    """The folder where `card/import` and `ai/import` look for files, and where exports go.

    A relative folder counts from the game's folder.
    """
    preset_folder: Annotated[kinds.Folder, Setting("E093", "world/presets")]
    """The folder where `preset/import` looks for files, and where `preset/export` puts them.

    A relative folder counts from the game's folder.
    """
    kept_folder: Annotated[kinds.Folder, Setting("E126", "kept")]
    """The folder for [kept answers](../build/kept-answers.md), which `ai/keep` writes.

    A relative folder counts from the game's folder.
    """
    knowledge_folder: Annotated[kinds.Folder, Setting("E060", "world/knowledge")]
    """The folder where `kb/import` looks for [folders of
    pages](../build/knowledge.md#folders-of-pages).

    A relative folder counts from the game's folder.
    """
    max_source_characters: Annotated[int, Field(ge=1000, le=UNBOUNDED), Setting("E016", 4_000_000)]
    """The most characters that a stored lorebook or preset may have."""
    messages_in_memory: Annotated[int, Field(ge=1000, le=UNBOUNDED), Setting("E086", 200_000)]
    """How many messages of all conversations together are kept in memory; see
    [below](#memory-of-the-server).
    """
    lore: Annotated[
        ActivationRules,
        read_by(kinds.read_lore),
        Setting(
            "E019",
            kinds.GAME_LORE,
            "a dictionary with rules of lore, as settings.lore of a scenario has them",
        ),
    ]
    """The rules by which entries of lorebooks activate."""
    assembly: Annotated[
        Mapping[str, Any],
        read_by(kinds.read_assembly_written),
        Setting(
            "E089",
            {},
            "a dictionary with rules of an assembly, as settings.assembly of a scenario has them",
        ),
    ]
    """How texts become the messages of a prompt;
    [scenarios](scenarios.md#putting-a-prompt-together) explain it.
    """
    lore_facts: Annotated[
        kinds.Paths,
        Setting(
            "E020", [], 'a list of dotted paths of functions, such as ["world.facts.of_the_tide"]'
        ),
    ]
    """Functions of your game that give lorebooks more facts to test."""
    card_limits: Annotated[
        CardLimits,
        read_by(kinds.read_card_limits),
        Setting("E021", {}, 'a dictionary of limits, such as {"file_bytes": 8388608}'),
    ]
    """How large the file of a card may be; see below."""
    post_history_depth: Annotated[
        kinds.WholeNumber, Setting("E068", 4, "a whole number of messages, 0 or more")
    ]
    """How many messages follow the `post_history_instructions` of a card that has no grant
    `after_history`.

    0: none, so these instructions end the history.
    """
    keep_days: Annotated[
        kinds.WholeNumber, Setting("E022", 0, "a whole number of days, 0 to keep everything")
    ]
    """After how many days without a new message a conversation is erased; see below. `0`: never."""
    compaction: Annotated[
        CompactionSettings,
        read_by(read_compaction_settings),
        Setting("E024", {}, 'a dictionary, such as {"by": "extract", "turn_percent": 90}'),
    ]
    """When histories are summarised, and how long the summaries are; see below."""
    dynamic_block: Annotated[BlocksMode, Setting("E025", "latest")]
    """What happens to the facts of the moment of earlier prompts; see below."""
    npc_typeclass: Annotated[kinds.DottedPath, Setting("E088", "evennia_ai.typeclasses.AINPC")]
    """The typeclass of an NPC that `card/spawn` creates."""
    hop_seconds: Annotated[kinds.Seconds, Setting("E036", 60.0)]
    """How long NPCs go on answering each other while no person says anything."""
    gather_seconds: Annotated[
        kinds.Seconds, Setting("E136", 1.0, "a number of seconds, 0 for none")
    ]
    """How long an NPC waits for further lines of a speaker before it begins its answer.

    One answer is for all these lines. `0`: it begins at once.
    """
    thinking_seconds: Annotated[
        kinds.Seconds, Setting("E037", 4.0, "a number of seconds, 0 for never")
    ]
    """After how many seconds an NPC shows that it is still thinking about its answer.

    `0`: never.
    """
    thinking_line: Annotated[kinds.Line, Setting("E038", translatable("thinks it over."))]
    """What the NPC then does. The NPC's own `thinking` takes precedence."""
    odd_replies: Annotated[OddReplies, Setting("E131", "watch")]
    """What happens after an [odd reply](../build/npcs.md#what-the-game-does-with-replies).

    `"watch"`: it is said and counted. `"retry"`: the model is asked once more. An NPC can have its
    own value.
    """
    limits: Annotated[
        Quotas,
        read_by(read_quotas),
        Setting("E042", {}, 'a dictionary of limits, such as {"player": {"calls_per_minute": 12}}'),
    ]
    """How many calls, tokens and dollars players, NPCs and the game may use; see
    [watching.md](../run/watching.md#limits).
    """
    limit_line: Annotated[
        kinds.Line, Setting("E043", translatable("*raises a hand: enough talk for now.*"))
    ]
    """What an NPC says when a limit is reached. Between asterisks, what it does."""
    lost_line: Annotated[
        kinds.LineOrNone,
        Setting("E120", translatable("lost the thread and missed some of what you said.")),
    ]
    """What an NPC does when a line of a player [gets no answer](../build/npcs.md).

    Only that player sees it, at most once a minute. `""`: nothing.
    """
    stopped_line: Annotated[
        kinds.LineOrNone, Setting("E121", translatable("stands still and does not answer."))
    ]
    """What an NPC does when somebody speaks to it while `ai/stopall` is active or it is paused.

    Only that person sees it. `""`: nothing.
    """
    disclosure: Annotated[
        kinds.Disclosure,
        read_by(kinds.read_disclosure),
        Setting("E141", False, 'True, False or a dictionary of lines, such as {"mark": ""}'),
    ]
    """Whether players are told which NPCs [speak through a model](../run/privacy.md).

    A dictionary gives some lines your own words; `""` shows none.
    """
    filter: Annotated[
        kinds.FilterRules,
        read_by(kinds.read_filter),
        Setting("E142", {}, 'a dictionary, such as {"said": "world.word_filter.said"}'),
    ]
    """Functions of your game that may [withhold words](../run/privacy.md#your-own-filter)."""
    opted_out_line: Annotated[
        kinds.LineOrNone, Setting("E140", translatable("gives you a friendly nod."))
    ]
    """What an NPC does when a player speaks to it who typed [`ai off`](../play/privacy.md).

    Only that player sees it, at most once a minute. `""`: nothing.
    """
    keep_call_days: Annotated[kinds.Count, Setting("E044", 30, "a whole number of days from 1 on")]
    """After how many days the calls of a day are added up.

    Then the game forgets whose words they answered.
    """
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
    """Whether requests to models and their replies are logged.

    `True`: each is a line of the log, with the first words of its texts. `"full"`: with the
    complete texts. See [watching.md](../run/watching.md#the-request-log).
    """
    metrics_port: Annotated[
        int, Field(ge=0, le=65535), Setting("E046", 0, "the number of a port, 0 for none")
    ]
    """The port of this machine at which Prometheus reads metrics.

    `0`: none. See [watching.md](../run/watching.md#metrics).
    """
    slow_ms: Annotated[
        kinds.WholeNumber, Setting("E084", 0, "a whole number of milliseconds, 0 for never")
    ]
    """How many milliseconds one piece of work may block the game before the log reports it.

    `0`: nothing is reported. See [watching.md](../run/watching.md#what-holds-the-game-up).
    """
    traces: Annotated[
        kinds.Tracing,
        read_by(kinds.read_tracing),
        Setting("E047", {}, 'a dictionary, such as {"to": "world.traces.exporter"}'),
    ]
    """Where traces are sent; see [watching.md](../run/watching.md#traces)."""
    memory: Annotated[
        MemorySettings,
        read_by(read_memory_settings),
        Setting("E048", {}, 'a dictionary, such as {"most": 8, "share_percent": 5}'),
    ]
    """What NPCs recall, how many memories they keep, and when they form memories by themselves; see
    [memory.md](../build/memory.md#settings).
    """
    lorekeeper: Annotated[
        LorekeeperSettings,
        read_by(read_lorekeeper_settings),
        Setting("E066", {}, 'a dictionary, such as {"base": "harbour", "budget_tokens": 8000}'),
    ]
    """For which knowledge base the lorekeeper writes pages, and how much it is shown; see
    [lorekeeper.md](../build/lorekeeper.md#settings).
    """
    tools: Annotated[
        kinds.Paths,
        Setting("E052", [], 'a list of dotted paths of classes, such as ["world.tools.Ring"]'),
    ]
    """Classes of your game that are tools of NPCs; see
    [tools.md](../build/tools.md#a-tool-of-your-own).
    """
    use_item: Annotated[
        kinds.PathOrNone,
        Setting("E053", "", 'the dotted path of a function, such as "world.tools.use", or ""'),
    ]
    """A function of your game that uses an object for an NPC; see
    [tools.md](../build/tools.md#using-things).
    """
    writings: Annotated[
        kinds.WritingLimits,
        read_by(kinds.read_writing_limits),
        Setting("E070", {}, 'a dictionary, such as {"characters": 1000, "most": 10, "a_day": 3}'),
    ]
    """How much NPCs may write; see [tools.md](../build/tools.md#letters-and-books)."""
    tick_alone: Annotated[bool, Setting("E055", False)]
    """`True`: NPCs with `tick_seconds` also act on their own where no player sees it; see
    [npcs.md](../build/npcs.md#ticks).
    """
    knowledge_wikis: Annotated[
        kinds.Wikis,
        Setting(
            "E056",
            {},
            'a dictionary, such as {"harbour": {"api": "https://wiki.example/w/api.php"}}',
        ),
    ]
    """The MediaWikis that are knowledge bases, by the keys of the bases; see
    [wiki.md](../build/wiki.md).
    """
    knowledge_wikipedia: Annotated[
        kinds.Address,
        Setting(
            "E057",
            "",
            'an address such as "https://en.wikipedia.org/w/api.php", or "" for none',
            is_shown=False,
        ),
    ]
    """The API of the Wikipedia in which the lorekeeper may look things up, such as
    `"https://en.wikipedia.org/w/api.php"`.

    `""`: it uses none.
    """
    knowledge_vault: Annotated[bool, Setting("E058", True)]
    """`False`: passages of restricted bases that a second model reads are stored nowhere; see
    [restricted-knowledge.md](../build/restricted-knowledge.md#the-vault).
    """
    knowledge_budget: Annotated[
        kinds.Budget,
        Setting("E059", {}, 'a dictionary, such as {"calls": 10, "free": 5, "minutes": 30}'),
    ]
    """How often an NPC may look something up; see
    [restricted-knowledge.md](../build/restricted-knowledge.md#how-often).
    """
    knowledge_languages: Annotated[
        kinds.SomeLanguages,
        Setting(
            "E087",
            ["en", "ru"],
            'a list of codes, such as ["de", "en", "ru"]; Chinese, Japanese and Korean need none',
        ),
    ]
    """The languages in which pages and memories are found by [other forms of their
    words](../build/knowledge.md#how-pages-are-found).

    After a change, run `evennia migrate`.
    """
    knowledge_embeddings: Annotated[bool, Setting("E061", False)]
    """`True`: pages in the game's database are found by [their
    meaning](../build/knowledge.md#how-pages-are-found) as well as by their words.

    This needs the extra `embeddings` and a model.
    """
    embeddings_profile: Annotated[str, Setting("E091", "", "the name of a profile, as text")]
    """The profile whose server turns texts into vectors (`/embeddings`), to find them by their
    meaning.

    `""`: the packaged model does it.
    """
    context_providers: Annotated[
        kinds.NamesOrPaths,
        Setting(
            "E063",
            kinds.USUAL_PROVIDERS,
            'a list of names and dotted paths, such as ["speaker", "world.context.weather"]',
        ),
    ]
    """The functions that tell NPCs the facts of the moment, in this order; see
    [dynamic-context.md](../extend/dynamic-context.md).
    """
    ooc_marks: Annotated[
        kinds.Texts,
        Setting("E123", ["((", "(ooc", "[ooc", "ooc:", "ooc "], 'a list of texts, such as ["(("]'),
    ]
    """How a line begins that a player says out of character. NPCs do not hear such lines."""
    persona_characters: Annotated[kinds.WholeNumber, Setting("E095", 1000)]
    """How many characters the [persona](../play/personas.md) of a player may have.

    0: NPCs are shown no personas.
    """
    elsewhere_tokens: Annotated[
        kinds.WholeNumber, Setting("E069", 200, "a whole number of tokens, 0 for nothing")
    ]
    """How many tokens of a prompt may tell what an NPC [experienced
    elsewhere](../extend/dynamic-context.md#what-an-npc-lived-through-elsewhere).

    0: none.
    """
    workers: Annotated[
        WorkerSettings,
        read_by(read_workers),
        Setting(
            "E097",
            {"queue": "inprocess"},
            'a dictionary, such as {"queue": "procrastinate", "caps": {"observe": 200}}',
        ),
    ]
    """`{"queue": "procrastinate"}`: [workers](../run/workers.md), on this machine or others, do
    what NPCs do besides speaking.
    """
    time_suffix: Annotated[
        kinds.TimeSuffix, Setting("E064", "game", '"real", "game" or "" for none')
    ]
    """Which clock gives the date and minute that are added to what people say to NPCs.

    `"game"`: the game's. `"real"`: the real one. `""`: nothing is added.
    """

    def __post_init__(self) -> None:
        recall = replace(self.memory.recall, languages=self.knowledge_languages)
        object.__setattr__(self, "memory", replace(self.memory, recall=recall))

    @property
    def profiles(self) -> dict[str, ModelProfile]:
        """All model profiles by name. `default` always exists."""
        found = profiles_of(self.given_profiles, game=self._default_profile())
        if self.summary_model:
            summariser = replace(
                found[DEFAULT], name=SUMMARISER, model=self.summary_model, price=None
            )
            found[SUMMARISER] = summariser
        return found

    @property
    def model_roles(self) -> dict[ModelRole, tuple[str, ...]]:
        """The names of the profiles for each role, in the order in which they are tried.

        A role that has no setting uses the profiles of the speaker.
        """
        speaker = self.given_roles.get("speaker", (DEFAULT,))
        found = {role: self.given_roles.get(role, speaker) for role in MODEL_ROLES}
        if self.summary_model:
            found[SUMMARISER] = (SUMMARISER,)
        return found

    def key_of(self, profile: ModelProfile) -> SecretText:
        """Return the key of a profile. It is empty if the profile has none."""
        return self.api_keys.get(profile.api_key_env, SecretText())

    def shows_key_of(self, profile: ModelProfile) -> bool:
        """True if the key of a profile is sent unencrypted to another machine."""
        return bool(self.key_of(profile)) and is_open(profile.base_url)

    @property
    def limit_tokens(self) -> int:
        """Return the most tokens of a prompt for the model with which NPCs speak by default."""
        return self.profiles[self.model_roles["speaker"][0]].limit_tokens

    @property
    def is_offline(self) -> bool:
        """True if NPCs speak without any model."""
        found = self.profiles
        return all(found[name].client == "offline" for name in self.model_roles["speaker"])

    def _default_profile(self) -> ModelProfile:
        """Return the profile that settings such as EVENNIA_AI_MODEL describe."""
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
