"""One prompt: what a row of a prompt file or of a procedural task becomes."""

from dataclasses import dataclass, field
from typing import Any

Message = dict[str, str]


@dataclass(frozen=True)
class Prompt:
    """A prompt with what its reward needs. The fields are those of verl's row format.

    `uid` is unique within its data set and stable between runs ("sort-train-17", "train.parquet:17").
    """

    uid: str
    messages: tuple[Message, ...]
    data_source: str
    ground_truth: Any
    extra_info: dict[str, Any] = field(default_factory=dict)
    token_ids: tuple[int, ...] = ()

    @property
    def text(self) -> str:
        """The content of the last message, as shown to people."""
        return self.messages[-1]["content"]
