"""Checklist row 3: two processes with uneven token counts have the gradients of one."""

import importlib
import math
from pathlib import Path

import pytest
import torch

from leverl.engine.algo.aggregation import AGGREGATIONS, loss_total


def test_a03_two_ranks_with_uneven_tokens_have_the_gradients_of_one_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A spawned process gets this process's sys.path, and imports the worker from it.
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    worker = importlib.import_module("data_parallel_worker")
    torch.multiprocessing.spawn(worker.work, args=(str(tmp_path),), nprocs=2)

    ranks = [torch.load(tmp_path / f"rank{rank}.pt", weights_only=True) for rank in range(2)]
    for mode in AGGREGATIONS:
        model, batch = worker.problem()
        total = loss_total(batch["mask"], mode, worker.NORM_LENGTH)
        worker.part_of_loss(model, batch, mode, total).backward()
        expected = worker.gradients(model)
        assert math.sqrt(sum(float(grad.square().sum()) for grad in expected)) > 1e-2
        for rank in ranks:
            assert rank[mode]["total"] == total
            torch.testing.assert_close(rank[mode]["by hand"], expected, rtol=1e-10, atol=1e-13)
            torch.testing.assert_close(rank[mode]["ddp"], expected, rtol=1e-10, atol=1e-13)
