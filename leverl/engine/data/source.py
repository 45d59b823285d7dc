"""From a configuration to prompts, and from prompts to the endless stream that training consumes."""

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from jinja2 import TemplateError
from transformers import PreTrainedTokenizerBase

from leverl.config.schema import Data
from leverl.engine.data.files import load_prompts
from leverl.engine.data.prompt import Prompt
from leverl.engine.data.reasoning import PREFIX, reasoning_prompts
from leverl.engine.data.tasks import PromptSet, Style, procedural_prompts
from leverl.errors import CheckpointError, ConfigError, DataError


def read_prompt_set(data: Data, *, embedded: bool) -> PromptSet:
    """The prompts that `data` names: files where `train_files` is set, else the task.

    `embedded` decides what `prompt_style: auto` means: bare for the embedded policy, instruct for any other.

    Raises:
        DataError: a file or a row cannot be used.
        ConfigError: unknown task, or arguments it does not take.
    """
    if data.train_files:
        held_out = load_prompts(data.eval_files, prompt_key=data.prompt_key) if data.eval_files else []
        return PromptSet.of(load_prompts(data.train_files, prompt_key=data.prompt_key), held_out)
    if data.task is None:
        raise ConfigError("no prompts: set data.task, or data.train_files.")
    automatic: Style = "bare" if embedded else "instruct"
    style: Style = automatic if data.prompt_style == "auto" else data.prompt_style
    if data.task.startswith(PREFIX):
        return reasoning_prompts(
            data.task,
            train_size=data.train_size,
            eval_size=data.eval_size,
            data_seed=data.data_seed,
            style=style,
            task_args=data.task_args,
        )
    if data.task_args:
        raise ConfigError(
            f"data.task_args={data.task_args}: the task '{data.task}' takes none, only {PREFIX}NAME tasks do."
        )
    return procedural_prompts(
        data.task,
        length=data.length,
        train_size=data.train_size,
        eval_size=data.eval_size,
        data_seed=data.data_seed,
        style=style,
    )


def encode_prompt(prompt: Prompt, tokenizer: PreTrainedTokenizerBase) -> tuple[int, ...]:
    """Token ids of a prompt, ready for the response to follow.

    By the chat template with the generation prompt; a tokenizer without a template gets the contents of the
    messages joined by newlines, with the special tokens it puts in front of a text but no end token.

    Raises:
        DataError: the chat template refuses the messages, or nothing is left to generate from.
    """
    messages = [dict(message) for message in prompt.messages]
    if tokenizer.chat_template:
        try:
            text = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
        except TemplateError as error:
            raise DataError(f"prompt {prompt.uid}: the chat template refuses it: {error}") from error
        # The template has written the special tokens already; a second BOS would be a bug.
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    else:
        ids = tokenizer("\n".join(message["content"] for message in messages))["input_ids"]
        if ids and ids[-1] == tokenizer.eos_token_id:
            ids = ids[:-1]
    if not ids:
        raise DataError(f"prompt {prompt.uid}: it has no tokens: {prompt.text!r}")
    return tuple(int(token) for token in ids)


def encode_prompts(
    prompts: Sequence[Prompt], tokenizer: PreTrainedTokenizerBase, *, max_prompt_length: int
) -> tuple[list[Prompt], int]:
    """Prompts with `token_ids`, and how many were dropped for being over `max_prompt_length` *tokens*.

    Nothing is truncated: a prompt without its head or tail is another question.

    Raises:
        DataError: no prompt is left, or one cannot be encoded.
    """
    encoded = [replace(prompt, token_ids=encode_prompt(prompt, tokenizer)) for prompt in prompts]
    kept = [prompt for prompt in encoded if len(prompt.token_ids) <= max_prompt_length]
    if not kept:
        lengths = [len(prompt.token_ids) for prompt in encoded]
        found = (
            f"all {len(lengths)} have {min(lengths)} to {max(lengths)} tokens"
            if lengths
            else "there are none"
        )
        raise DataError(
            f"no prompt is left: {found}, and data.max_prompt_length is {max_prompt_length} tokens."
        )
    return kept, len(encoded) - len(kept)


class PromptSource:
    """An endless stream of prompts, each exactly once per epoch.

    Epoch e has its own order, drawn from a generator of (seed, e) alone; so the position in the stream is two
    numbers, and a stream resumed anywhere, the edge of an epoch included, goes on as if it had not stopped.
    A batch that finds the epoch exhausted runs on into the next one.
    """

    def __init__(
        self,
        prompts: Sequence[Prompt],
        tokenizer: PreTrainedTokenizerBase,
        *,
        max_prompt_length: int,
        seed: int,
        shuffle: bool = True,
    ) -> None:
        """Encode all prompts; `dropped` counts those over `max_prompt_length` tokens.

        Raises:
            DataError: two prompts share a uid, one cannot be encoded, or none is left.
        """
        repeated = [uid for uid, times in Counter(prompt.uid for prompt in prompts).items() if times > 1]
        if repeated:
            raise DataError(f"two prompts have the uid '{repeated[0]}': uids must be unique.")
        self.prompts, self.dropped = encode_prompts(prompts, tokenizer, max_prompt_length=max_prompt_length)
        self.epoch = 0
        self.position = 0
        self._seed = seed
        self._shuffle = shuffle
        self._order = self._order_of(0)

    @property
    def size(self) -> int:
        """Prompts in an epoch."""
        return len(self.prompts)

    def next(self, n: int) -> list[Prompt]:
        """The next `n` prompts of the stream."""
        if n < 1:
            raise ConfigError(f"a batch needs at least one prompt, asked for {n}.")
        batch: list[Prompt] = []
        while len(batch) < n:
            taken = self._order[self.position : self.position + n - len(batch)]
            batch += [self.prompts[index] for index in taken]
            self._move(self.epoch, self.position + len(taken))
        return batch

    def state_dict(self) -> dict[str, Any]:
        """Where the stream is, and what it is a stream of."""
        return {"epoch": self.epoch, "position": self.position, **self._identity()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from `state`.

        Raises:
            CheckpointError: the state is incomplete, or belongs to other prompts, seed or order.
        """
        for key, own in self._identity().items():
            if state.get(key) != own:
                raise CheckpointError(
                    f"the data position in the checkpoint belongs to another stream: {key} was "
                    f"{state.get(key)!r} and is now {own!r}. "
                    "Resume with the same data and seed, or fork the run."
                )
        epoch, position = state.get("epoch"), state.get("position")
        valid = (
            isinstance(epoch, int) and isinstance(position, int) and epoch >= 0 and 0 <= position < self.size
        )
        if not valid:
            raise CheckpointError(
                f"the data position in the checkpoint is not valid: epoch={epoch!r}, position={position!r} "
                f"with {self.size} prompts."
            )
        self._order = self._order_of(int(state["epoch"]))
        self.epoch, self.position = int(state["epoch"]), int(state["position"])

    def _move(self, epoch: int, position: int) -> None:
        if position == self.size:  # the edge is the start of the next epoch, never the end of the last
            epoch, position = epoch + 1, 0
            self._order = self._order_of(epoch)
        self.epoch, self.position = epoch, position

    def _order_of(self, epoch: int) -> list[int]:
        if not self._shuffle:
            return list(range(self.size))
        return [int(index) for index in np.random.default_rng([self._seed, epoch]).permutation(self.size)]

    def _identity(self) -> dict[str, Any]:
        digest = hashlib.sha256()
        for prompt in self.prompts:
            digest.update(f"{prompt.uid}\0{prompt.token_ids}\0{prompt.ground_truth!r}\n".encode())
        return {
            "seed": self._seed,
            "shuffle": self._shuffle,
            "size": self.size,
            "prompts": digest.hexdigest()[:16],
        }
