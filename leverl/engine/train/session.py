"""A run in progress: everything it needs, built or restored."""

from dataclasses import dataclass
from pathlib import Path

from leverl.config.schema import Config
from leverl.engine.data.prompt import Prompt
from leverl.engine.data.seeding import derive_seed
from leverl.engine.data.source import PromptSource, encode_prompts, read_prompt_set
from leverl.engine.policy.tokenizer import check_alphabet
from leverl.engine.runtime import local
from leverl.engine.runtime.local import Roles
from leverl.engine.sync import plain as weights
from leverl.engine.train.checkpoint import Checkpoint, Counters
from leverl.record.layout import RunFolder
from leverl.record.observer import Observer
from leverl.record.run_record import RunRecord

Seed = tuple[int | str, ...]


@dataclass(frozen=True)
class Origin:
    """Where a run begins: at the base model (no checkpoint), or at a checkpoint, as its own or as a fork."""

    seed: Seed
    checkpoint: Checkpoint | None = None
    forked: bool = False

    @property
    def model(self) -> Path | None:
        return self.checkpoint.model if self.checkpoint else None

    @property
    def critic(self) -> Path | None:
        return self.checkpoint.critic if self.checkpoint else None

    @property
    def counters(self) -> Counters:
        return self.checkpoint.counters if self.checkpoint else Counters()

    @property
    def measured_until(self) -> int:
        """Last step whose metrics stay in the run's file; -1: none."""
        step = self.counters.step
        return step if step > 0 and not self.forked else -1  # at step 0 the first evaluation is done again


@dataclass
class Session:
    """What the loop works on."""

    config: Config
    folder: RunFolder
    roles: Roles
    source: PromptSource
    held_out: list[Prompt]
    seed: Seed
    record: RunRecord
    counters: Counters
    observer: Observer
    remarks: list[str]
    first_step: int  # of this sitting
    reward_raised: bool = False

    def note(self, text: str) -> None:
        """Tell the observer and the record, once."""
        if text not in self.record.notes:
            self.record = self.record.with_(notes=[*self.record.notes, text])
            self.observer.note(text)


def open_session(
    folder: RunFolder, config: Config, record: RunRecord, origin: Origin, observer: Observer
) -> Session:
    """Read the prompts, build the roles, and put them where `origin` says.

    Raises:
        ConfigError, DataError: model or prompts cannot be used. CheckpointError: the checkpoint does not fit.
    """
    observer.phase("loading")
    prompts = read_prompt_set(config.data, embedded=config.model.path == "embedded")
    if config.model.path == "embedded":
        texts = (prompt.text for prompt in (*prompts.train, *prompts.eval))
        check_alphabet(texts, config.model.embedded.alphabet)
    roles = local.launch(config, prompts.train, weights=origin.model, critic_weights=origin.critic)
    tokenizer, limit = roles.actor.policy.tokenizer, config.data.max_prompt_length
    source = PromptSource(
        prompts.train,
        tokenizer,
        max_prompt_length=limit,
        seed=derive_seed(*origin.seed, "data"),
        shuffle=config.data.shuffle,
    )
    held_out: list[Prompt] = []
    dropped = 0
    if prompts.eval:
        chosen = prompts.eval[: config.data.eval_size]
        held_out, dropped = encode_prompts(chosen, tokenizer, max_prompt_length=limit)
    if origin.checkpoint is not None:
        _restore(origin.checkpoint, roles, source, forked=origin.forked)
    counters = origin.counters
    weights.push(roles.actor.policy.model, roles.rollout.engine, version=counters.step)
    return Session(
        config=config,
        folder=folder,
        roles=roles,
        source=source,
        held_out=held_out,
        seed=origin.seed,
        record=record,
        counters=counters,
        observer=observer,
        remarks=_remarks(source, limit, len(held_out), dropped, prompts.overlap),
        first_step=counters.step + 1,
    )


def _restore(checkpoint: Checkpoint, roles: Roles, source: PromptSource, *, forked: bool) -> None:
    """Optimizers, and for a run's own checkpoint the place in the data too."""
    state = checkpoint.trainer_state()
    roles.actor.load_state_dict(state["actor"])
    if roles.critic is not None and state["critic"] is not None:
        roles.critic.load_state_dict(state["critic"])
    if not forked:
        source.load_state_dict(state["cursor"])


def _remarks(source: PromptSource, limit: int, held_out: int, dropped: int, overlap: int) -> list[str]:
    """What a person should know about the prompts."""
    found = []
    too_long = f"left out: longer than max_prompt_length = {limit}"
    if source.dropped:
        found.append(f"{source.dropped} of {source.dropped + source.size} training prompts {too_long}")
    if dropped:
        found.append(f"{dropped} of {dropped + held_out} held-out prompts {too_long}")
    if held_out == 0:
        found.append("no held-out prompts (data.eval_files): the run will have no score")
    elif overlap:
        found.append(
            f"{overlap} of {held_out} held-out prompts are trained on too: eval/score does not show whether the "
            "policy generalises"
        )
    return found
