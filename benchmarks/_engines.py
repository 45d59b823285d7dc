"""The two engines behind one protocol: built for a setting, then told how many steps to do.

Both train the same weights on the same prompts with GRPO: group-normalised rewards, token-mean loss, one update
per batch, no KL, AdamW, float32 on one thread. Nothing is logged or saved inside a step.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import _workload as workload
import torch
from _workload import Setting

Report = Callable[[list[int], float], None]
"""Called at the end of each step with the lengths of its responses and the seconds that sampling them took. The
next step starts when it returns."""


class Engine(Protocol):
    def run(self, steps: int, report: Report) -> None: ...


class Leverl:
    """leverl's roles and dataflow on the local runtime."""

    def __init__(self, setting: Setting, folder: Path) -> None:
        from leverl.config import loader
        from leverl.engine.data.source import PromptSource, read_prompt_set
        from leverl.engine.runtime import local
        from leverl.engine.train.stopwatch import Stopwatch
        from leverl.record.observer import Silent

        self.config = loader.load("grpo", _leverl_settings(setting, folder)).config
        torch.set_num_threads(self.config.train.threads)
        self.roles = local.launch(self.config)
        prompts = read_prompt_set(self.config.data, embedded=False).train
        tokenizer = self.roles.actor.policy.tokenizer
        self.source = PromptSource(prompts, tokenizer, max_prompt_length=64, seed=0)
        self.clock = Stopwatch(Silent())

    def run(self, steps: int, report: Report) -> None:
        from leverl.engine.train.dataflow import ppo_iteration

        for step in range(1, steps + 1):
            prompts = self.source.next(self.config.rollout.prompts_per_iteration)
            batch, _ = ppo_iteration(prompts, step, self.roles, self.config, self.clock, 0)
            report(batch.lengths.tolist(), self.clock.lap()["timing_s/gen"])


def _leverl_settings(setting: Setting, folder: Path) -> dict[str, Any]:
    responses = setting.model.responses
    return {
        "model": str(folder / "model"),
        "data.train_files": [str(folder / "prompts.jsonl")],
        "reward": "function",
        "reward.function_path": workload.__file__,
        "algorithm": "grpo",
        "kl_in": "off",
        "loss_aggregation": "token_mean",
        "batch_size": responses,
        "mini_batch_size": responses,
        "rollout_micro_batch_size": responses,
        "group_size": setting.group_size,
        "max_response_length": setting.lengths.cap,
        "actor_learning_rate": workload.LEARNING_RATE,
    }


class Trl:
    """TRL's GRPOTrainer with generation by transformers."""

    def __init__(self, setting: Setting, folder: Path) -> None:
        from datasets import Dataset
        from transformers import AutoModelForCausalLM, AutoTokenizer
        from trl import GRPOTrainer

        torch.set_num_threads(1)
        self.lengths: list[int] = []
        self.generating = 0.0
        self.trainer = GRPOTrainer(
            model=AutoModelForCausalLM.from_pretrained(folder / "model", dtype=torch.float32),
            processing_class=AutoTokenizer.from_pretrained(folder / "model", padding_side="left"),
            reward_funcs=self._reward,
            args=_trl_arguments(setting, folder),
            train_dataset=Dataset.from_dict({"prompt": workload.prompt_texts()}),
        )

    def _reward(self, completions: list[str], completion_ids: list[list[int]], **_: Any) -> list[float]:
        self.lengths = [len(ids) for ids in completion_ids]
        return [workload.score(text) for text in completions]

    def run(self, steps: int, report: Report) -> None:
        from transformers import TrainerCallback

        engine = self

        class Reporting(TrainerCallback):  # type: ignore[misc]  # not typed for mypy
            def on_step_end(self, *_: Any, **__: Any) -> None:
                report(engine.lengths, engine.generating)

        self._time_generation()
        self.trainer.args.max_steps = steps
        self.trainer.add_callback(Reporting())
        self.trainer.train()

    def _time_generation(self) -> None:
        generate = self.trainer._generate_single_turn

        def timed(*args: Any, **options: Any) -> Any:
            began = time.perf_counter()
            found = generate(*args, **options)
            self.generating = time.perf_counter() - began
            return found

        self.trainer._generate_single_turn = timed


def _trl_arguments(setting: Setting, folder: Path) -> Any:
    from trl import GRPOConfig

    return GRPOConfig(
        output_dir=str(folder / "trl"),
        max_steps=1,  # set when it runs
        per_device_train_batch_size=setting.model.responses // setting.trl_passes,
        gradient_accumulation_steps=setting.trl_passes,  # sampled together too: steps_per_generation follows
        num_generations=setting.group_size,
        num_iterations=1,
        max_completion_length=setting.lengths.cap,
        temperature=1.0,
        beta=0.0,
        loss_type="dapo",  # token mean over the whole batch
        scale_rewards="group",
        learning_rate=workload.LEARNING_RATE,
        lr_scheduler_type="constant",
        adam_beta1=workload.BETAS[0],
        adam_beta2=workload.BETAS[1],
        weight_decay=0.0,
        max_grad_norm=1.0,
        gradient_checkpointing=False,  # faster without
        bf16=False,
        use_cpu=True,
        seed=0,
        dataloader_pin_memory=False,
        disable_tqdm=True,
        logging_strategy="no",
        save_strategy="no",
        report_to=[],
    )
