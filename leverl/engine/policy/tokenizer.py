"""The character tokenizer of the embedded model: one id per character of its alphabet, and roles."""

from collections.abc import Iterable
from typing import Literal

from transformers import Qwen2Tokenizer

from leverl.errors import ConfigError

SPECIAL = ("<|pad|>", "<|eos|>", "<|system|>", "<|user|>", "<|assistant|>", "<|unk|>")

Alphabet = Literal["digits", "ascii"]
ALPHABETS: dict[Alphabet, str] = {
    "digits": "0123456789+-= ",
    "ascii": "\n" + "".join(chr(code) for code in range(32, 127)),
}
"""From random weights the right characters are found by chance: the smaller alphabet learns sooner."""

CHAT_TEMPLATE = (
    "{%- for message in messages -%}"
    "{%- if message['role'] not in ['system', 'user', 'assistant'] -%}"
    "{{ raise_exception('unknown role ' + message['role']) }}"
    "{%- endif -%}"
    "{{ '<|' + message['role'] + '|>' + message['content'] }}"
    "{%- if message['role'] == 'assistant' -%}{{ '<|eos|>' }}{%- endif -%}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{ '<|assistant|>' }}{%- endif -%}"
)


def character_tokenizer(max_length: int, alphabet: Alphabet) -> Qwen2Tokenizer:
    """The special tokens, then the characters of the alphabet in order: 20 ids for digits, 102 for ascii.

    It is Qwen2's own class, a byte-level BPE, here without merges: loaders choose the class by the model's
    type, whatever the saved files say. Characters outside the alphabet are dropped, hence `check_alphabet`. A
    chat is written as role token and content; an assistant's turn ends with <|eos|>.
    """
    # Byte-level BPE writes the space as Ġ and the newline as Ċ; printable characters stand for themselves.
    characters = ALPHABETS[alphabet].replace(" ", "Ġ").replace("\n", "Ċ")
    return Qwen2Tokenizer(
        vocab={token: index for index, token in enumerate((*SPECIAL, *characters))},
        merges=[],
        pad_token="<|pad|>",
        eos_token="<|eos|>",
        unk_token="<|unk|>",
        additional_special_tokens=["<|system|>", "<|user|>", "<|assistant|>"],
        chat_template=CHAT_TEMPLATE,
        model_max_length=max_length,
        clean_up_tokenization_spaces=False,
    )


def check_alphabet(texts: Iterable[str], alphabet: Alphabet) -> None:
    """Refuse texts the tokenizer would drop characters of.

    Raises:
        ConfigError: names the text and the characters.
    """
    known = set(ALPHABETS[alphabet])
    for text in texts:
        foreign = sorted(set(text) - known)
        if foreign:
            raise ConfigError(
                f"embedded_alphabet = {alphabet} has no {', '.join(map(repr, foreign[:5]))}, found in the "
                f"prompt {text[:60]!r}. "
                + (
                    "Set embedded_alphabet=ascii."
                    if alphabet == "digits"
                    else "Use a pretrained model (model=PATH)."
                )
            )
