"""Find out why a model gave no reply, from the errors of any server and protocol.

A server reports an error by a status, an error code, or only a sentence. `failure` finds the cause
(`errors.Fault`) and the setting that helps. The cause decides whether to retry, to use the next
profile, to open the breaker, or to shorten the prompt. `ENDINGS` lists the reasons with which a
reply can end.

Sentences are matched because many servers give nothing else: llama.cpp answers with 500 to an error
of a chat template, and several providers use 400 for everything else. The comments at the patterns
name the servers that send these texts.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from evennia_ai.engine.errors import (
    Fault,
    ModelRefused,
    ModelRubbish,
    ModelUnavailable,
    RoleWish,
)
from evennia_ai.services.llm.learned import INNER_FIELDS, setting_for
from evennia_ai.services.llm.profiles import Endpoint

MOST_READ: Final = 500
"""The most values in the body of an error that are read."""

MOST_CHARACTERS: Final = 8_000
"""The most characters in the body of an error that are read."""

Ending = Literal["stop", "length", "tool_calls"] | Fault

UNENDED: Final = "unended"
"""The finish reason of a stream that stopped without giving one. Its last words may be missing."""

ENDINGS: Final[Mapping[str, Ending]] = {
    UNENDED: "length",
    **dict.fromkeys(("", "stop", "end_turn", "stop_sequence", "eos", "eos_token", "end"), "stop"),
    **dict.fromkeys(("complete", "completed", "finished", "finish_reason_stop"), "stop"),
    **dict.fromkeys(("tool_calls", "tool_use", "function_call", "tool_call"), "tool_calls"),
    **dict.fromkeys(("length", "max_tokens", "max_output_tokens", "model_length"), "length"),
    **dict.fromkeys(("model_context_window_exceeded", "max_completion_tokens"), "length"),
    **dict.fromkeys(("content_filter", "content-filter", "content_filtered"), Fault.POLICY),
    **dict.fromkeys(("refusal", "sensitive", "safety", "recitation", "blocklist"), Fault.POLICY),
    **dict.fromkeys(("prohibited_content", "spii", "guardrail_intervened"), Fault.POLICY),
    **dict.fromkeys(("error", "network_error", "abort", "aborted", "timeout"), Fault.TEMPORARY),
    **dict.fromkeys(("insufficient_system_resource", "overloaded"), Fault.TEMPORARY),
}
"""What each finish reason of a server means. The keys are in lower case."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_CODES: Final[Mapping[Fault, frozenset[str]]] = {
    Fault.TOO_LONG: _words(
        """
        context_length_exceeded exceed_context_size_error request_too_large input_too_long
        context_window_exceeded prompt_too_long tokens_limit_reached
        """
    ),
    Fault.POLICY: _words(
        """
        content_filter content_policy_violation responsibleaipolicyviolation moderation safety
        data_inspection_failed refusal prohibited_content sensitive guardrail_intervened
        moderation_blocked
        """
    ),
    Fault.ACCOUNT: _words(
        """
        authentication_error invalid_api_key permission_error permission_denied unauthenticated
        unauthorized forbidden billing_error insufficient_quota billing_not_active
        billing_hard_limit_reached insufficient_credits payment_required not_found_error
        not_found model_not_found account_deactivated access_terminated insufficient_balance
        model_not_available
        """
    ),
    Fault.TEMPORARY: _words(
        """
        server_error internal_error internal_server_error internalservererror internal
        unavailable service_unavailable unavailable_error overloaded overloaded_error
        engine_overloaded rate_limit_exceeded rate_limit_error rate_limit too_many_requests
        resource_exhausted timeout timeout_error gateway_timeout bad_gateway deadline_exceeded
        api_error api_connection_error aborted network_error provider_error
        insufficient_system_resource
        """
    ),
    Fault.MALFORMED: _words(
        "tool_use_failed json_validate_failed"
    ),  # Groq sends it when the model's output is malformed.
    Fault.PROMPT: _words(
        """
        invalid_request_error badrequesterror invalid_argument bad_request unsupported_parameter
        unsupported_value unknown_parameter invalid_value
        """
    ),
}

_TRANSIENT: Final = frozenset({408, 409, 425, 429})
_ACCOUNT: Final = frozenset({401, 402, 403, 404, 405, 410})


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE | re.DOTALL)


_TOO_LONG: Final = _any(
    r"maximum (?:context|prompt) length",  # sent by OpenAI, vLLM, OpenRouter and xAI
    r"context[ _](?:length|size|window|limit)\b.{0,80}?(?:exceed|overflow|only|too )",
    r"exceed\w*.{0,60}?context[ _](?:length|size|window|limit)",  # sent by llama.cpp and Ollama
    r"(?:prompt|input|message|request(?: body)?)s?(?: is| are)? too (?:long|large)",  # Anthropic
    r"than the context length|model token limit|contextwindowexceeded",  # LM Studio, Kimi, LiteLLM
    r"max_tokens must be at least 1, got -",  # vLLM, if the prompt leaves no tokens for a reply
    r"超长",  # sent by Zhipu
    r"too many (?:input |prompt )?tokens",  # sent by Cohere
    r"input token count|input tokens exceed|exceeds the maximum number of tokens",  # Gemini, OpenAI
    r"reduce (?:the length of|your (?:prompt|message))",  # sent by Groq
    r"longer than the model|context the overflows|context shift is disabled",  # SGLang, LM Studio
    r"max_new_tokens`? must be <|range of input length|max_seq_len|max_model_len",  # TGI, Qwen
)
_WINDOWS: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?:context|prompt) length (?:is|of)(?: only)? \(?(\d[\d,]*)",
        r"with (\d[\d,]*) maximum context",
        r"> ?(\d[\d,]*)",
        r"context[ _](?:length|size|window|limit)[^.\d]{0,30}?(\d[\d,]*)",
        r"(?:tokens allowed|must be <=?|configured limit of)\D{0,3}(\d[\d,]*)",
        r"(?:max size:|cannot exceed) (\d[\d,]*)",
        r"\blimit:? (\d[\d,]*)",
        r"max_(?:seq|model)_len\D{0,6}(\d[\d,]*)",
        r"input length should be \[\d+, ?(\d[\d,]*)",
    )
)
_COUNTED: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(\d[\d,]*) (?:in the messages|of text input|input tokens|`inputs` tokens)",
        r"(?:resulted in|request contains|you requested(?: about)?|prompt contains) (\d[\d,]*)",
        r"(\d[\d,]*) \+ \d[\d,]* >",
        r"(\d[\d,]*)(?: tokens)? >",
        r"(?:request|input|requested tokens) ?\(?(\d[\d,]*)",
        r"(?:input|token|prompt|request) (?:count|length) ?\(?(\d[\d,]*)",
        r"\brequested:? (\d[\d,]*)|received (\d[\d,]*)|keep the first (\d[\d,]*)",
    )
)
_WINDOW_NAMES: Final = ("n_ctx", "max_model_len", "max_context_length", "context_length")
_COUNT_NAMES: Final = ("n_prompt_tokens", "prompt_tokens", "input_tokens")

_POLICY: Final = _any(
    r"content (?:policy|management policy|filter)|usage polic|safety system|acceptable use",
    r"(?:was|were|been|be) flagged|requires moderation|content exists risk",  # OpenRouter, DeepSeek
    r"inappropriate content|prohibited[ _]content|blocked by (?:safety|our|the) ",
)
_NO_CREDIT: Final = _any(
    r"insufficient[ _](?:credit|quota|balance|funds)|credit balance|out of credits?",
    r"exceeded your current quota|quota (?:has been )?exceeded|billing|payment required|arrears",
    r"余额不足|欠费",  # sent by Zhipu
)
_BAD_KEY: Final = _any(
    r"(?:invalid|incorrect|missing|no|expired|unauthorized) (?:api|access|authentication)[ _-]?key",
    r"api[ _-]?key (?:is |was )?(?:not valid|invalid|missing|required|expired|not found)",
    r"(?:invalid|missing|no) (?:auth\w*|credentials|bearer)",
    r"(?:organization|account|workspace)\b.{0,30}?(?:disabled|suspended|deactivated)",
)
_COMES_BACK: Final = _any(
    r"retry in|try again in|retry after|per (?:minute|second)|rate.?limit|google\.rpc\.retryinfo"
)
_THROTTLED: Final = _any(r"throttl|rate exceeded")  # Bedrock sends it with status 400
# An error inside a successful response may have nothing but a text.
_PASSES: Final = _any(
    r"overloaded|over capacity|busy|try again|retry|time(?:d )?-?out|rate.?limit|too many requests",
    r"internal (?:server )?error|upstream|disconnect|connection (?:error|reset|closed)",
    r"out of memory|unavailable",
)
_NO_MODEL: Final = _any(
    r"\bmodel\b.{0,80}?(?:not found|not exist|not a valid|not loaded|decommissioned|no longer)",
    r"(?:unknown|invalid|no such|not a valid) model|no models? (?:is |are )?loaded",
    r"(?:^|\n)model: \S+(?:$|\n)",  # sent by Anthropic
)
_NO_ADDRESS: Final = _any(r"unexpected endpoint|no route|not found|cannot (?:post|get)|invalid url")
_NO_TOOLS: Final = _any(
    r"does(?: not|n't) support (?:tool|function)|support(?:s)? tool use|--jinja",
    r"(?:tool|function)s?(?:[ _-](?:use|call\w*|choice|param))?\b.{0,30}?"
    r"(?:not supported|unsupported|not available|not enabled|requires)",
    r"enable-auto-tool-choice",
)
_NO_SYSTEM: Final = _any(
    r"system (?:role|message|prompt|instruction)s?\b.{0,30}?"
    r"(?:not supported|unsupported|not allowed)",
    r"(?:not|n't) support(?: the)? system|developer instruction is not enabled",
)
_ROLES: Final = _any(
    r"roles? must alternate|alternat\w+.{0,20}?(?:user|role)|conversation roles",
    r"system (?:role|message)s?\b.{0,40}?(?:must be|beginning|first|only)|unexpected role",
    r"expected last role|after the optional system|consecutive (?:user|assistant) messages",
)
_TEMPLATE: Final = _any(r"jinja|chat[ _]template|template (?:error|exception|render)|raise_except")
_NO_SCHEMA: Final = _any(
    r"response_format|json[ _]schema|structured output|grammar|tool_choice forces",
)
_NO_STREAM: Final = _any(
    r"\bstream(?:ing)?['\"`]?\b.{0,30}?(?:not supported|unsupported|not available|not allowed)",
    r"(?:not|n't) support stream",
)
_PAST_CALLS: Final = _any(
    r"missing.{0,20}?(?:thought_signature|reasoning)|(?:thought_signature|reasoning\w*).{0,5} ?"
    r"(?:is |field )?(?:missing|required|must be)|expected `?(?:thinking|redacted_thinking)",
)

_REFUSES: Final = _any(
    r"unknown|unrecogni[sz]ed|unsupported|not supported|n't supported|not? (?:longer )?support",
    r"not permitted|not allowed|forbidden|unexpected|deprecated|cannot find field|extra inputs",
    r"invalid (?:field|parameter|argument|property|key)|no such|not accepted|may only be set",
)
# After these words, a server lists the values that it accepts.
_TAKES: Final = _any(
    r"expected one of[^\n]*|(?:valid|allowed|supported|known) (?:\w+ )?are[^\n]*",
    r"\buse [^\n]*",
)
_OURS: Final = _words(
    """
        prompt_cache_key user stream_options temperature top_p stop seed stop_sequences metadata
        max_tokens max_completion_tokens
        """
)
LIMITS: Final = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
"""The two names that servers use for the limit of a reply. Each maps to the other."""


@dataclass(slots=True, kw_only=True)
class _Said:
    """The contents of an error's body, collected from any structure."""

    text: str
    codes: frozenset[str]
    numbers: Mapping[str, int]
    places: tuple[str, ...]
    """The fields of the request that the error names as their place."""


def failure(
    endpoint: Endpoint,
    *,
    status: int | None,
    words: str,
    shown: str | None = None,
    body: object = None,
    extra: Collection[str] = (),
    retry_in_seconds: float | None = None,
    otherwise: Fault = Fault.MALFORMED,
) -> ModelRefused | ModelRubbish | ModelUnavailable:
    """Return the error for a call that a server answered with an error.

    Args:
        endpoint: The server and model that were asked.
        status: The status of the response; None for an error inside a successful response.
        words: The server's explanation for people.
        body: The response as JSON, or None.
        extra: The names of fields that the profile's `extra` added to the request.
        retry_in_seconds: How long the server asks to wait, or None.
        otherwise: The cause to assume if neither codes nor words show it.
    """
    said = _collect_contents(words, body)
    if status is None:
        status = next((int(one) for one in said.codes if re.fullmatch(r"[345]\d\d", one)), None)
    quoted = endpoint.api_key.quote(words if shown is None else shown) or "no reason given"
    told = quoted if status is None else f"status {status}: {quoted}"
    refused = _refused_fields(said, extra) if status is None or status < 500 else {}
    found = _find_fault(said, status, comes_back=bool(retry_in_seconds)) or otherwise
    fault = Fault.PROMPT if refused else found
    if fault is Fault.TEMPORARY:
        return ModelUnavailable(
            endpoint.name, told, status=status, retry_in_seconds=retry_in_seconds
        )
    if fault is Fault.MALFORMED:
        return ModelRubbish(endpoint.name, f"the server sent an error: {quoted}")
    window = counted = None
    if fault is Fault.TOO_LONG:
        window = _number(said, _WINDOW_NAMES, _WINDOWS)
        counted = _number(said, _COUNT_NAMES, _COUNTED)
    return ModelRefused(
        endpoint.name,
        status,
        quoted,
        fault=fault,
        advice=_advice(fault, said, status, refused=refused, window_tokens=window),
        window_tokens=window,
        counted_tokens=counted,
        refused=refused,
        wants_past_thoughts=fault is Fault.PROMPT and bool(_PAST_CALLS.search(said.text)),
        wants_roles=_wanted_roles(said) if fault is Fault.PROMPT else "",
    )


def _wanted_roles(said: _Said) -> RoleWish:
    if _NO_SYSTEM.search(said.text):
        return "no_system"
    return "in_turn" if _ROLES.search(said.text) else ""


def _find_fault(said: _Said, status: int | None, *, comes_back: bool) -> Fault | None:
    """Return the cause of an error, or None if it is unknown.

    The first row of the table that applies counts.
    """
    text = said.text
    coded = next((fault for fault, codes in _CODES.items() if codes & said.codes), None)
    of_prompt = (_TEMPLATE, _ROLES, _NO_SYSTEM, _NO_TOOLS)
    of_account = (_NO_CREDIT, _BAD_KEY, _NO_MODEL)
    is_spent = status == 429 and (_NO_CREDIT.search(text) or "insufficient_quota" in said.codes)
    known = 0 if status is None else status
    table = (
        (coded is Fault.TOO_LONG or status == 413, Fault.TOO_LONG),
        (status != 429 and _TOO_LONG.search(text), Fault.TOO_LONG),
        # llama.cpp and Ollama answer with 500 if the chat template fails. Another profile of such a
        # server would fail too.
        (any(one.search(text) for one in of_prompt), Fault.PROMPT),
        (coded is Fault.MALFORMED, Fault.MALFORMED),
        # Google also calls a limit per minute a quota.
        (is_spent and not comes_back and not _COMES_BACK.search(text), Fault.ACCOUNT),
        (known in _TRANSIENT or known >= 500 or _THROTTLED.search(text), Fault.TEMPORARY),
        (coded is Fault.POLICY or _POLICY.search(text), Fault.POLICY),
        (status in _ACCOUNT or any(one.search(text) for one in of_account), Fault.ACCOUNT),
        (0 < known < 400, Fault.ACCOUNT),  # A redirect means that the address is wrong.
        (known, Fault.PROMPT),
        (coded is not None, coded),
        (_NO_ADDRESS.search(text), Fault.ACCOUNT),
        (_PASSES.search(text), Fault.TEMPORARY),
    )
    return next((fault for is_so, fault in table if is_so and fault), None)


def _advice(
    fault: Fault,
    said: _Said,
    status: int | None,
    *,
    refused: Mapping[str, str],
    window_tokens: int | None,
) -> str:
    """Return what an admin can do, with the name of the setting.

    The first row of the table that applies counts.
    """
    text, size = said.text, f" to {window_tokens}" if window_tokens else ""
    prompts, accounts = fault is Fault.PROMPT, fault is Fault.ACCOUNT
    no_key = status in (401, 403) or _BAD_KEY.search(text)
    no_model = _NO_MODEL.search(text) or "model_not_found" in said.codes
    table = (
        (refused, f"to leave it out for good, set {setting_for(refused)} in the profile"),
        (
            fault is Fault.TOO_LONG,
            f"set context_tokens of the profile{size}, or give the server a larger window",
        ),
        (
            fault is Fault.POLICY,
            "the provider's filter stopped it: change the prompt, or model of the profile",
        ),
        (prompts and _PAST_CALLS.search(text), 'set past_calls of the profile to "told"'),
        (prompts and _NO_SYSTEM.search(text), "set system_role of the profile to False"),
        (prompts and _ROLES.search(text), "set strict_roles of the profile to True"),
        (prompts and _NO_TOOLS.search(text), 'set tools of the profile to "schema" or "none"'),
        (prompts and _NO_SCHEMA.search(text), 'set schema of the profile to "text"'),
        (prompts and _NO_STREAM.search(text), "set stream of the profile to False"),
        (
            prompts and _TEMPLATE.search(text),
            "set strict_roles of the profile to True, or system_role to False",
        ),
        (accounts and no_key, "check the key: api_key_env of the profile names its variable"),
        (
            accounts and (status == 402 or _NO_CREDIT.search(text)),
            "check the credit of the account, or name another profile for the role",
        ),
        (accounts and no_model, "check model of the profile"),
        (
            300 <= (status or 0) < 400,
            "set base_url of the profile to the address to which the server redirects",
        ),
        (accounts, "check base_url of the profile (is /v1 missing?), and its model"),
    )
    other = "check tools, schema, strict_roles, reply_tokens and extra of the profile"
    return next((advice for is_so, advice in table if is_so), other)


def _refused_fields(said: _Said, extra: Collection[str]) -> dict[str, str]:
    """Return the fields that the server refuses by name, each with the field to send instead or "".

    Fields that define the request are never returned, so a server cannot make us remove them.
    """
    text = _TAKES.sub("", said.text)
    found: dict[str, str] = {}
    if not _REFUSES.search(f"{text} {' '.join(said.codes)}"):
        return found
    for field in sorted(_OURS | INNER_FIELDS | set(extra)):
        name = re.escape(field)
        # Common words such as "user" count only if they are quoted or called a field.
        is_word = "_" not in field
        bare = rf"(?:argument|parameter|field|name|property|key|input)s?(?: supplied)?:? {name}\b"
        bare = rf"{bare}|(?:supported|permitted|allowed)[^:\n]{{0,40}}: {name}\b"
        spelt = rf"(?<!role )[\"'`]{name}[\"'`]|{bare}|\b{name}(?:: extra|`? (?:is|does|may))"
        pattern = spelt if is_word else rf"\b{name}\b"
        sentences = re.split(r"\n|\. ", text)
        is_named = any(
            re.search(pattern, one, re.IGNORECASE) and _REFUSES.search(one) for one in sentences
        )
        if is_named or field in said.places:
            found[field] = LIMITS.get(field, "")
    return found


def _collect_contents(words: str, body: object) -> _Said:
    """Collect all texts, codes, numbers and field names in an error, at any depth."""
    texts, codes, numbers, places = [words], set[str](), dict[str, int](), list[str]()
    for name, value in _members(body):
        if isinstance(value, str) and value:
            texts.append(value)
        if name in ("code", "type", "status", "reason", "error_code", "error_type"):
            codes.add(str(value).lower())
        if name in ("param", "field", "parameter") and isinstance(value, str):
            places.append(value)
        if name == "loc" and isinstance(value, list) and value:
            places.append(str(value[-1]))
        if isinstance(value, int):
            numbers[name] = value
    text = "\n".join(dict.fromkeys(texts))[:MOST_CHARACTERS]
    return _Said(text=text, codes=frozenset(codes), numbers=numbers, places=tuple(places))


def _members(body: object) -> Iterator[tuple[str, object]]:
    """Yield all members of a JSON value, at any depth, up to a limit. Each has its name."""
    left: list[tuple[str, object]] = [("", body)]
    for _ in range(MOST_READ):
        if not left:
            return
        name, value = left.pop(0)
        yield name, value
        if isinstance(value, dict):
            left += [(str(inner), one) for inner, one in value.items()]
        elif isinstance(value, list):
            left += [(name if name != "loc" else "", one) for one in value[:MOST_READ]]


def _number(
    said: _Said, names: Collection[str], patterns: Collection[re.Pattern[str]]
) -> int | None:
    """Return a number in an error, or None.

    The first member with one of `names` counts, else the first match of the pattern in the text.
    """
    for name in names:
        if name in said.numbers:
            return said.numbers[name]
    for pattern in patterns:
        found = pattern.search(said.text)
        if found is not None:
            digits: Any = next(filter(None, found.groups()))
            return int(digits.replace(",", "")[:12])
    return None
