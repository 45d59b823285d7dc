"""Supervised steps before RL: a policy that already answers some prompts right."""

from collections.abc import Sequence

import torch

from leverl.engine.data.prompt import Prompt
from leverl.engine.policy.load import Policy
from leverl.engine.policy.log_probs import token_log_probs
from leverl.engine.policy.sequences import join

BATCH_SIZE = 64
LEARNING_RATE = 1e-3


def warm_start(policy: Policy, lessons: Sequence[Prompt], *, steps: int, seed: int) -> None:
    """Minimise the cross-entropy of answers and end token, in place: AdamW, batches of 64 drawn with
    replacement.

    Args:
        lessons: prompts whose `ground_truth` is the right answer as text.
    """
    model = policy.model
    examples = [_example(policy, lesson) for lesson in lessons]
    width = max(len(answer) for _, answer in examples)
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, betas=(0.9, 0.95), weight_decay=0.0)
    model.train()
    for _ in range(steps):
        chosen = torch.randint(len(examples), (BATCH_SIZE,), generator=generator).tolist()
        answers = [examples[index][1] for index in chosen]
        responses = torch.tensor([answer + [0] * (width - len(answer)) for answer in answers])
        lengths = torch.tensor([len(answer) for answer in answers])
        sequences = join([examples[index][0] for index in chosen], responses, lengths)
        log_probs = token_log_probs(policy, sequences, temperature=1.0).log_probs
        optimizer.zero_grad()
        loss = -log_probs.sum() / lengths.sum()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    optimizer.zero_grad()
    model.eval()


def _example(policy: Policy, lesson: Prompt) -> tuple[list[int], list[int]]:
    tokenizer = policy.tokenizer
    text = tokenizer.apply_chat_template(list(lesson.messages), tokenize=False, add_generation_prompt=True)
    prompt = tokenizer(text, add_special_tokens=False)["input_ids"]
    answer = tokenizer(str(lesson.ground_truth), add_special_tokens=False)["input_ids"]
    return prompt, [*answer, tokenizer.eos_token_id]
