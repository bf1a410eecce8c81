"""Take speech out of the wrapping that models write around it.

Models wrap speech in JSON, in code fences and Markdown, in preambles ("Here is a response in
character:") and in offers to go on ("Would you like me to continue?"). Only wrapping that no
character would say is removed. Doubtful text stays, and `odd_replies` reports it. `others_part`
finds where prose begins to speak or act for somebody else.

`unwrapped` goes from the whole text to its lines. `is_wrapping` tells a reader of a stream that
`unwrapped` may change a line, so the reader says nothing from that line on until the reply ends.
The cost is linear in the length of the text, because all patterns are bounded.
"""

import json
import re
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Any, Final

from evennia_ai.engine.text.chat_markup import OTHER_HEADINGS, OWN_HEADINGS

SPEECH_FIELDS: Final = (
    *("say", "speech", "dialogue", "dialog", "spoken", "utterance", "reply", "response"),
    *("message", "text", "answer", "output", "content"),
)
"""The members of a JSON object that may be its speech; the first one present counts."""

_SPEAKER_FIELDS: Final = ("speaker", "name", "character", "role", "from", "author")
_ACTION_FIELDS: Final = ("action", "actions", "pose", "emote", "gesture", "narration")
_OWN_SPEAKERS: Final = frozenset({"", "assistant", "ai", "npc", "you", "bot", "model", "character"})

_FENCED: Final = re.compile(r"```[ \t]{0,8}(?P<language>[\w+-]{0,20})[ \t]{0,8}\n?", re.IGNORECASE)
# Text in a fence with one of these labels is speech. In any other fence it is a program.
_PROSE: Final = frozenset(
    [
        *("", "text", "txt", "plaintext", "plain", "markdown", "md", "json", "dialogue", "dialog"),
        *("response", "reply", "output", "roleplay", "speech", "quote", "none"),
    ]
)
_JSON_TEXT: Final = re.compile(r"\s*(?:```[ \t]{0,8}\w{0,12}\s{0,8})?(?=[\[{])")
_DECODER: Final = json.JSONDecoder(strict=False)

# A preamble is one line up to a colon that announces a reply and says that it is an exercise.
_ANNOUNCES: Final = (
    r"here(?:['’]s| is| are| comes)|below is|the following is|this is (?:how|my|a)|"
    r"hier (?:ist|sind|kommt|folgt)|voici|aqu[ií] (?:est[áa]|tienes|va|tiene)|вот|"
    r"eis|ecco|以下(?:は|が|是)|こちらが|这是|下面是|"
    r"i(?:['’]ll| will) (?:respond|reply|answer)|ich (?:antworte|werde)|as \w{1,20},"
)
_AGREES: Final = (
    r"sure(?: thing)?|certainly|of course|absolutely|okay|ok|alright|all right|understood|got it|"
    r"great|no problem|klar|natürlich|gerne?|sicher|verstanden|selbstverständlich|bien sûr|"
    r"d['’]accord|certainement|très bien|claro(?: que sí)?|por supuesto|desde luego|entendido|"
    r"конечно|хорошо|разумеется|понял[аи]?|もちろんです|もちろん|はい|承知しました|"
    r"わかりました|分かりました|了解しました|好的|当然|没问题|明白了"
)
_NOUNS: Final = (
    r"response|reply|answer|line|dialogue|continuation|respond|post|take|"
    r"antwort|reaktion|dialog|fortsetzung|réponse|réplique|dialogue|suite|"
    r"respuesta|réplica|diálogo|continuación|ответ|реплик|диалог|продолжени|"
    r"返答|応答|返事|回答|セリフ|台詞|回复|回应|对话|台词"
)
_EXERCISE: Final = (
    r"character|persona|role-?play|\brole\b|\bscene\b|\bprompt\b|\bstyle\b|would (?:say|respond|"
    r"reply|answer)|might (?:say|respond)|a (?:possible|suitable|short|brief|natural) |"
    r"charakter|\brolle\b|figur|szene|mögliche|personnage|\brôle\b|scène|possible|"
    r"personaje|\bpapel\b|escena|posible|образ|роли|персонаж|от лица|возможн|"
    r"キャラクター|役|として|角色|身份|口吻|以下|下面是"
)
_INTRODUCTION: Final = re.compile(
    rf"\A[*_#> ¡]{{0,8}}(?:(?:{_AGREES}) ?[!.,，。！、:]{{0,3}}\s{{0,4}})?(?:{_ANNOUNCES})"
    r"(?P<about>[^\n:：\"“„«「]{0,160})(?:[:：]|。(?=\n))[*_ ]{0,8}",
    re.IGNORECASE,
)
_MAY_INTRODUCE: Final = re.compile(
    rf"\A[*_#> ¡\"]{{0,8}}(?:(?:{_AGREES}|{_ANNOUNCES})(?!\w)|以下|こちら|もちろん|这是)",
    re.IGNORECASE,
)
_MOST_INTRODUCTION: Final = 260
_ABOUT: Final = re.compile(_NOUNS, re.IGNORECASE)
_IS_EXERCISE: Final = re.compile(_EXERCISE, re.IGNORECASE)
_LABEL: Final = re.compile(
    r"\A[*_#> ]{0,8}(?:(?:(?:final |my |npc |in-character )?(?:response|reply)|"
    r"antwort|réponse|respuesta|ответ|返答|応答|回复|回应)[*_ ]{0,4}[:：]"
    r"|(?:output|dialogue|speech)[*_ ]{0,4}[:：](?=[*_ ]{0,4}[\n\"“„«]))[*_ ]{0,4}",
    re.IGNORECASE,
)
# Reasoning that is announced as such and has numbered steps, but no end.
_THOUGHTS: Final = re.compile(
    r"\A[*_#> ]{0,8}(?:think(?:ing)?|thought|reasoning) process[*_ ]{0,4}:[*_\s]{0,8}1\.",
    re.IGNORECASE,
)

_OFFERS: Final = (
    r"would you like me to (?:continue|go on with|expand|elaborate|rewrite|revise|adjust|write|"
    r"generate|provide|keep going)\b[^?\n]{0,80}\?|"
    r"(?:shall|should) i (?:continue|go on with|write|rewrite|adjust) (?:the|this|our) (?:scene|"
    r"story|"
    r"role-?play|conversation|dialogue)[^?\n]{0,60}\?|"
    r"(?:do you )?want me to (?:continue|go on with|write|rewrite|adjust) (?:the|this) (?:scene|"
    r"story|"
    r"role-?play|conversation|dialogue)[^?\n]{0,60}\?|"
    r"let me know if you(?:['’]d| would)? (?:like|want)(?: me)? to (?:continue|adjust|change|"
    r"rewrite|"
    r"expand)[^.!?\n]{0,80}[.!]|"
    r"(?:möchtest du|möchten sie|willst du), dass ich [^?\n]{0,60}(?:fort(?:fahre|setze)|"
    r"weiterschreibe|weitermache)\?|soll ich die (?:szene|geschichte) (?:fortsetzen|"
    r"weiterschreiben)\?|"
    r"(?:souhaitez-vous|voulez-vous|veux-tu|souhaites-tu) que je (?:continue|poursuive|développe)"
    r"[^?\n]{0,60}\?|"
    r"¿?(?:quieres|te gustaría|desea|deseas|le gustaría) que (?:continúe|prosiga)[^?\n]{0,60}\?|"
    r"(?:хотите|хочешь),? чтобы я продолжил[аи]?[^?\n]{0,60}\?|"
    r"продолжить (?:сцену|диалог|историю|ролевую игру)\?|"
    r"(?:シーン|続き|会話|物語)を(?:続け|書き)[^?？\n]{0,20}(?:か|ですか)[?？。]?|"
    r"(?:需要|要不要|希望|想让|要)我(?:继续|接着写)[^?？\n]{0,30}[?？]"
)
_OFFER: Final = re.compile(_OFFERS, re.IGNORECASE)
_LAST_OFFER: Final = re.compile(
    rf"(?:(?<=[\n.!?…\"”»)*。！？」])|(?<=[.!?…\"”»)*] ))[(\[*_\- ]{{0,4}}"
    rf"(?:{_OFFERS})[)\]*_ ]{{0,4}}\Z",
    re.IGNORECASE,
)

# The heading of a message is left to `speech.own_part`.
_HEADING: Final = re.compile(
    rf"#{{1,6}} +(?!(?i:{'|'.join((*OTHER_HEADINGS, *OWN_HEADINGS))})[*_ ]{{0,4}}[:：])"
    r"(?P<title>\S.*?) *#*"
)
_SENTENCE: Final = re.compile(r"[.!?…。！？\"”»」:)*][*_]{0,3}\Z")
CELL_BARS: Final = 2
"""The most bars of a line that is not a row of a table."""
_RULE: Final = re.compile(r"(?:[-–—=~] ?){3,}|(?:\* ?){3,}|(?:_ ?){3,}")
_TABLE_RULE: Final = re.compile(r"\|?(?: *:?-{2,}:? *\|)+(?: *:?-{2,}:? *)?")
_STRONG: Final = re.compile(
    r"(?P<mark>\*\*\*|\*\*|(?<![\w.])__)(?=\S)(?P<inner>[^*_\n]{1,400}?)(?<=\S)(?P=mark)(?!\w)"
)
_CODE: Final = re.compile(r"`{1,3}(?P<inner>[^`\n]{1,400})`{1,3}")
_LINK: Final = re.compile(r"!?\[(?P<inner>[^\[\]\n]{0,200})\]\([^()\s]{1,300}\)")
_HTML: Final = re.compile(
    r"</?(?:b|i|u|em|strong|p|br|span|div|center|q|speech|dialogue|say|npc|message)\s?/?>",
    re.IGNORECASE,
)
# `[give: jar -> Anna]`; not `[Note: ...]`, which odd_replies reports.
_ORDER: Final = re.compile(
    r"\[[a-z_]{2,24}(?: [a-z]{1,12})? ?[:=](?!//)[^\[\]\n]{1,120}\]|"
    r"\[[a-z_]{2,24} [^\[\]\n]{0,60}->[^\[\]\n]{1,60}\]|"
    r"\{[a-z_]{2,24} ?[:=][^{}\n]{1,120}\}|<[a-z_]{2,24}(?: \w{1,20}=[^<>\n]{1,80})+/?>"
)
_OWN_TEMPLATE: Final = re.compile(
    r"\{\{ {0,2}(?:char|bot|npc|name) {0,2}\}\}|<(?:BOT|CHAR)>", re.IGNORECASE
)
_USER_TEMPLATE: Final = re.compile(r"\{\{ {0,2}(?:user|player) {0,2}\}\}|<USER>", re.IGNORECASE)
_SCRIPT: Final = re.compile(
    r"[*_\[ ]{0,4}[^\W\d_a-z][\w'’-]{0,24}(?: [^\W\d_a-z][\w'’-]{0,24})?[*_\] ]{0,4}[:：]"
)
_TELLING: Final = (
    r"says|asks|answers|replies|adds|whispers|mutters|murmurs|shouts|calls|cries|exclaims|"
    r"sagt|fragt|antwortet|erwidert|flüstert|ruft|dit|demande|répond|chuchote|s['’]exclame|"
    r"dice|pregunta|responde|contesta|susurra|exclama|говорит|спрашивает|отвечает|шепчет|кричит"
)
_BLANKS: Final = re.compile(r" {2,}")

_MAY_CHANGE: Final = re.compile(
    r"\*\*|__|`|\{|\}|\A ?[—–]|</?\w|\]\(|\A ?(?:#{1,6} |\||>|[-–—=~_*] ?[-–—=~_*])|"
    r"\[[a-z_]{2,24}(?: [a-z]{1,12})? ?(?:[:=]|.*->)"
)


def unwrapped(text: str, *, own_names: Sequence[str]) -> str:
    """Return a reply without the wrapping that models write around speech.

    Args:
        text: The reply without reasoning and control marks, with single line breaks.
        own_names: The names of the speaker. The first one replaces `{{char}}`.
    """
    if _THOUGHTS.match(text):
        return ""
    said = speech_in_json(text, own_names=own_names)
    text = _without_introduction(text.strip() if said is None else said, own_names)
    said = speech_in_json(text, own_names=own_names)
    text = text if said is None else said
    if own_names:
        text = _OWN_TEMPLATE.sub(lambda _: own_names[0], text)
    text = _without_fences(_USER_TEMPLATE.sub("you", text))
    text = "\n".join(_undashed(line, own_names) for line in _plain_lines(text.split("\n")))
    text = _without_introduction(text.strip(), own_names)
    return _LAST_OFFER.sub("", text).strip()


def is_wrapping(line: str) -> bool:
    """True if `unwrapped` may change this line, or a line that begins like this."""
    is_changed = any(pattern.search(line) for pattern in (_MAY_CHANGE, _OFFER))
    return is_changed or is_script_label(line)


def is_script_label(line: str) -> bool:
    """True if a line begins with what may be a name and a colon: `Tamsin: ...`."""
    return _SCRIPT.match(line) is not None


def may_be_introduction(start: str) -> bool:
    """True if a reply that begins like this may begin with a preamble."""
    if _LABEL.match(start):
        return True
    if _MAY_INTRODUCE.match(start) is None:
        return False
    first_line, line_end, _ = start[: _MOST_INTRODUCTION + 1].partition("\n")
    is_short = len(first_line) <= _MOST_INTRODUCTION and not line_end
    return is_short or any(sign in first_line for sign in ":：。")


def _without_introduction(text: str, own_names: Sequence[str]) -> str:
    """Return the text without a preamble and a label such as `Response:` at its start."""
    introduction = _INTRODUCTION.match(text)
    if introduction is not None and text[introduction.end() :].strip():
        about = introduction[0]
        names_speaker = any(name and name.casefold() in about.casefold() for name in own_names)
        if _ABOUT.search(about) and (names_speaker or _IS_EXERCISE.search(about)):
            text = text[introduction.end() :].lstrip()
    label = _LABEL.match(text)
    return text[label.end() :].lstrip() if label else text


def speech_in_json(text: str, *, own_names: Sequence[str] = ()) -> str | None:
    """Return the speech in a reply that is one JSON value, alone or in a code fence.

    None if the reply is something else. An action in the JSON becomes an action between asterisks.
    Objects of a list are spoken up to the first one with another speaker.
    """
    begun = _JSON_TEXT.match(text)
    if begun is None:
        return None
    try:
        value, end = _DECODER.raw_decode(text, begun.end())
    except (ValueError, RecursionError):
        return None
    if text[end:].strip(" \t\n`"):
        return None
    values = value if isinstance(value, list) else [value]
    own = _OWN_SPEAKERS.union(name.casefold() for name in own_names)
    said: list[str] = []
    for one in values:
        if not isinstance(one, dict):
            return None
        lowered = {str(key).casefold(): value for key, value in one.items()}
        speaker = next((lowered[key] for key in _SPEAKER_FIELDS if key in lowered), "")
        if not isinstance(speaker, str) or speaker.strip().casefold() not in own:
            break
        part = _speech_of(lowered)
        if part is None:
            return None
        said.append(part)
    return "\n".join(filter(None, said)) if said else None


def _speech_of(lowered: dict[str, Any]) -> str | None:
    """Return the action and the speech in the members of one object, None without speech."""
    said = next((lowered[key] for key in SPEECH_FIELDS if key in lowered), None)
    if isinstance(said, dict):
        return _speech_of({str(key).casefold(): value for key, value in said.items()})
    done = next((lowered[key] for key in _ACTION_FIELDS if key in lowered), "")
    action = done.strip(" *_") if isinstance(done, str) else ""
    if not isinstance(said, str):
        return f"*{action}*" if action and said is None else None
    if not action or action.casefold() in ("none", "null", "say", "speak", "talk", "reply"):
        return said
    return f"*{action}* {said}" if said.strip() else f"*{action}*"


def _without_fences(text: str) -> str:
    """Return the text without code fences and without programs in them."""
    parts, at = [], 0
    while fence := _FENCED.search(text, at):
        end = text.find("```", fence.end())
        is_line = "\n" in text[fence.start() : end if end >= 0 else None]
        language = fence["language"] if is_line else ""
        begin = fence.end() if is_line else fence.start() + 3
        end = len(text) if end < 0 else end
        parts.append(text[at : fence.start()])
        if language.casefold() in _PROSE:
            parts.append(text[begin:end].strip("\n"))
        at = min(len(text), end + 3)
    return "".join((*parts, text[at:]))


def _plain_lines(lines: Sequence[str]) -> list[str]:
    """Return the lines of Markdown as plain text."""
    said: list[str] = []
    is_quoted = all(not line.strip() or line.lstrip().startswith("> ") for line in lines)
    titles = [line for line in lines if _HEADING.fullmatch(line.strip())]
    has_more = any(line.strip() and line not in titles for line in lines)
    for number, raw in enumerate(lines):
        line = raw.strip()
        if is_quoted:
            line = line.removeprefix(">").strip()
        following = lines[number + 1].strip() if number + 1 < len(lines) else ""
        is_head = "|" in line and _TABLE_RULE.fullmatch(following) is not None
        if _RULE.fullmatch(line) or _TABLE_RULE.fullmatch(line) or is_head:
            continue
        if heading := _HEADING.fullmatch(line):
            line = heading["title"]
            if has_more and not _SENTENCE.search(line):
                continue
        elif line.count("|") > CELL_BARS and line[0] == line[-1] == "|":
            cells = [cell.strip() for cell in line.split("|")]
            line = f"- {', '.join(filter(None, cells))}"
        said.append(_plain_line(line))
    return said if any(said) else list(lines)


def _plain_line(line: str) -> str:
    """Return a line without emphasis, inline code, links and orders in brackets."""
    if not _MAY_CHANGE.search(line):
        return line
    line = _STRONG.sub(_bare_or_action, line)
    line = _CODE.sub(r"\g<inner>", line).replace("`", "")
    line = _HTML.sub(" ", _LINK.sub(r"\g<inner>", line))
    return _BLANKS.sub(" ", _ORDER.sub("", line)).strip()


@lru_cache(maxsize=256)
def _dashed(names: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern for speech between dashes with the speaker's name, as in Russian."""
    who = "|".join(map(re.escape, names))
    return re.compile(
        rf"[—–] ?(?P<first>[^—–\n]{{1,400}}?),? ?[—–] ?(?:(?:{_TELLING}) (?:{who}|он|она|él|ella)"
        rf"|(?:{who}) (?:{_TELLING}))[.,]?(?: ?[—–] ?(?P<rest>[^—–\n]{{1,400}}))?",
        re.IGNORECASE,
    )


def _undashed(line: str, names: Sequence[str]) -> str:
    dashed = _dashed(tuple(names)).fullmatch(line) if line[:1] in "—–" and names else None
    if dashed is None:
        return line
    first, rest = dashed["first"].rstrip(), dashed["rest"]
    if not first.endswith((".", "!", "?", "…")):
        first += "." if not rest or rest[:1].isupper() else ","
    return f"{first} {rest}" if rest else first


def _bare_or_action(strong: re.Match[str]) -> str:
    """Return words in bold type. What is also in italics, or tells of somebody, is an action."""
    inner = strong["inner"]
    return f"*{inner}*" if strong["mark"] == "***" or _TELLS.match(inner) else inner


_TELLS: Final = re.compile(r"(?:he|she|they) \w+s\b|[a-z]+s(?: \w+){0,8}[.]?\Z")


@lru_cache(maxsize=256)
def _own_frame(name: str) -> re.Pattern[str]:
    """Return a pattern for `[Mira]`, `<Mira>`, `mira>` and `Mira (smiling):` before speech."""
    who = re.escape(name)
    return re.compile(
        rf"[*_ ]{{0,4}}(?:\[{who}\](?! ?[:：])|<{who}>(?! ?[:：])|{who}>|{who}(?=「)"
        rf"|{who} ?[(\[（](?P<how>[^()\[\]（）\n]{{1,60}})[)\]）])"
        r"[*_ ]{0,4}(?P<colon>[:：]?)[*_ ]{0,4}(?=\S)",
        re.IGNORECASE,
    )


def without_frame(line: str, name: str) -> str | None:
    """Return the rest of a line that begins with a name in a frame, such as `[Mira]` or `mira>`.

    None if it begins with something else. `Mira (smiling):` becomes an action.
    """
    if not name or not any(sign in line[: len(name) + 80] for sign in "[(<>（「"):
        return None
    frame = _own_frame(name).match(line)
    if frame is None or (frame["how"] and not frame["colon"]):
        return None
    rest, how = line[frame.end() :], frame["how"] or ""
    first = how.split(" ", 1)[0]
    if first.isalpha() and first.isascii() and first.endswith("ing"):
        return f"*is {how}* {rest}"
    if first.isalpha() and first.isascii() and first.endswith("s") and not first.endswith("ss"):
        return f"*{how}* {rest}"
    return rest


_OPENING: Final = r"[\"“„«「—]"


@lru_cache(maxsize=256)
def _others_words(names: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern for words and acts that a reply gives to somebody else.

    Speech about others is not matched: `Anna says, "Come", and we come.`
    """
    who = "|".join(sorted(map(re.escape, names), key=len, reverse=True))
    ends = r"(?=\s*\Z|\s+[A-ZÀ-ÞА-Я\"“„«*])"
    begins = r"(?:\A|(?<=[\"”»」*] ))"
    return re.compile(
        # `Anna says, "..."`, `Anna: "..."`, and in Chinese and Japanese without a verb
        rf"{begins}(?i:{who}) (?:{_TELLING})(?: [^\"“„«:,\n]{{0,30}})?[,:：]? ?{_OPENING}"
        rf"[^\"“”„«»\n]{{0,400}}(?:[.!?…—] ?[\"”“»]{ends}|\Z)"
        rf"|{begins}(?:{who})(?:(?:は|が)?「|(?:说|问|答)道?[:：,，]? ?[“「])"
        # `"..." says Anna`; in `"..." Anna says, "..."` only the second quotation is Anna's
        rf"|{begins}[\"“„«][^\"“”„«»\n]{{1,400}}(?:,[\"”“»]|[\"”“»](?!.{{0,60}}[,:：] ?{_OPENING}))"
        rf" ?,? ?(?:(?i:{who}) (?:{_TELLING})|(?:{_TELLING}) (?i:{who}))[.,]?{ends}"
        # `*Anna nods*`
        rf"|\*(?i:{who}) (?:\w+ly )?\w{{2,20}}(?:s|t)\b[^*\n]{{0,400}}\*",
    )


@lru_cache(maxsize=256)
def _others_tag(names: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern for what every place that `others_part` finds contains."""
    who = "|".join(map(re.escape, names))
    return re.compile(
        rf"(?:{who}) ?(?:{_TELLING}|「|は|が|说|问|答)|(?:{_TELLING}) (?:{who})"
        rf"|\*(?:{who}) ",
        re.IGNORECASE,
    )


def may_be_others_part(line: str, names: Collection[str]) -> bool:
    """True if a line that begins like this may speak or act for one of these people."""
    present = tuple(sorted(name for name in names if name and name in line))
    return bool(present) and _others_tag(present).search(line) is not None


def others_part(line: str, names: Collection[str]) -> int | None:
    """Return where a line begins to speak or act for one of these people, None if it does not."""
    present = tuple(sorted(name for name in names if name and name in line))
    found = _others_words(present).search(line) if present else None
    return None if found is None else found.start()
