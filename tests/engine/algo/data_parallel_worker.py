"""What each process of test_data_parallel.py computes; apart, so that a spawned process can import it."""

from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn import Linear
from torch.nn.parallel import DistributedDataParallel

from leverl.engine.algo.aggregation import AGGREGATIONS, Aggregation, aggregate, loss_total
from leverl.engine.algo.kl import kl_k2
from leverl.engine.algo.policy_loss import clipped_policy_loss

LENGTHS = (6, 1, 0, 2, 5, 3, 4)
SHARDS = ((0, 3), (3, 7))
"""Rows of each rank: 7 tokens against 14, 2 sequences against 4."""
WIDTH, FEATURES, VOCABULARY, NORM_LENGTH, KL_COEF = 7, 5, 11, 8, 0.3


def problem() -> tuple[Linear, dict[str, Tensor]]:
    """A linear policy and a ragged batch, the same in every process."""
    generator = torch.Generator().manual_seed(21)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    rows = len(LENGTHS)
    model = Linear(FEATURES, VOCABULARY, dtype=torch.float64)
    with torch.no_grad():
        model.weight.copy_(draw(VOCABULARY, FEATURES))
        model.bias.copy_(draw(VOCABULARY))
    batch = {
        "features": draw(rows, WIDTH, FEATURES),
        "tokens": torch.randint(VOCABULARY, (rows, WIDTH), generator=generator),
        "old": draw(rows, WIDTH) - 3,
        "ref": draw(rows, WIDTH) - 3,
        "advantages": draw(rows, WIDTH),
        "mask": torch.arange(WIDTH) < torch.tensor(LENGTHS)[:, None],
    }
    return model, batch


def part_of_loss(
    model: torch.nn.Module, batch: dict[str, Tensor], mode: Aggregation, total: Tensor
) -> Tensor:
    log_probs = torch.log_softmax(model(batch["features"]), -1)
    log_probs = log_probs.gather(-1, batch["tokens"].unsqueeze(-1)).squeeze(-1)
    mask = batch["mask"]
    terms = clipped_policy_loss(
        log_probs, batch["old"], batch["advantages"], mask, clip_low=0.2, clip_high=0.3, dual_clip=3.0
    )
    per_token = terms.per_token + KL_COEF * kl_k2(log_probs, batch["ref"], mask)
    return aggregate(per_token, mask, mode, total=total)


def gradients(model: torch.nn.Module) -> list[Tensor]:
    found = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    return [grad.clone() for grad in found]


def work(rank: int, folder: str) -> None:
    """Write the gradients of all modes: summed by hand over micro-batches of one row, and through DDP."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/rendezvous", rank=rank, world_size=2)
    results = {}
    for mode in AGGREGATIONS:
        model, batch = problem()
        mine = {name: x[slice(*SHARDS[rank])] for name, x in batch.items()}
        total = loss_total(mine["mask"], mode, NORM_LENGTH)
        dist.all_reduce(total)
        for row in range(len(mine["mask"])):
            one = {name: x[row : row + 1] for name, x in mine.items()}
            part_of_loss(model, one, mode, total).backward()
        by_hand = gradients(model)
        for grad in by_hand:
            dist.all_reduce(grad)

        wrapped = DistributedDataParallel(problem()[0])
        (2 * part_of_loss(wrapped, mine, mode, total)).backward()  # DDP divides by the 2 ranks
        results[mode] = {"total": total, "by hand": by_hand, "ddp": gradients(wrapped)}
    torch.save(results, Path(folder) / f"rank{rank}.pt")
    dist.destroy_process_group()
