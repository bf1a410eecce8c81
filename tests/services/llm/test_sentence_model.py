"""Test the model that turns texts into vectors. Skipped if it is not installed."""

import os

import pytest

from evennia_ai.services.llm import sentence_model as module
from evennia_ai.services.llm.sentence_model import (
    SentenceModelError,
    missing_packages,
    sentence_model,
)
from tests.absent import absent, need

pytestmark = pytest.mark.extra


@pytest.fixture(scope="module")
def model():
    if missing := missing_packages():
        absent("no sentence is turned into a vector", why=f"{', '.join(missing)} is not installed")
    return sentence_model()


def similarity(model, one, other):
    import numpy as np

    first, second = (np.frombuffer(vector, "<f4") for vector in model.vectors([one, other]))
    return float(first @ second)


# The example that was published with the model, and the values of its own implementation.
@pytest.mark.parametrize(
    ("other", "near"),
    [
        ("That is a happy person", 1.0),
        ("That is a happy dog", 0.695),
        ("That is a very happy person", 0.943),
        ("Today is a sunny day", 0.257),
    ],
)
def test_similarities_equal_the_published_ones(model, other, near):
    assert similarity(model, "That is a happy person", other) == pytest.approx(near, abs=1e-3)


def test_vector_has_length_one(model):
    import numpy as np

    (vector,) = (np.frombuffer(one, "<f4") for one in model.vectors(["The ferry."]))
    assert vector.shape == (384,)
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("text", ["", "\0", "\ud800", "渡船", "ferry " * 5_000])
def test_any_text_has_a_vector(model, text):
    import numpy as np

    (vector,) = model.vectors([text])
    assert np.isfinite(np.frombuffer(vector, "<f4")).all()


def test_equal_texts_have_equal_vectors(model):
    assert model.vectors(["The ferry."]) == model.vectors(["The ferry."])


def test_missing_package_is_reported_with_the_install_command(monkeypatch):
    monkeypatch.setattr(module, "NEEDED", ("no_such_package",))
    sentence_model.cache_clear()

    with pytest.raises(SentenceModelError, match="no_such_package is not installed; type: pip"):
        sentence_model()


def test_folder_without_model_is_reported(tmp_path):
    need("tokenizers", "safetensors", undone="nothing reads a model")

    with pytest.raises(SentenceModelError, match=str(tmp_path)):
        module.SentenceModel(tmp_path)
    assert os.environ["OPENBLAS_NUM_THREADS"]
