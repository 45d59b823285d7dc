"""Where sampled ids are written while rows of the running batch come and go."""

import torch
from torch import Tensor

from leverl.engine.data.batch import STOPPED, TRUNCATED
from leverl.engine.inference.protocol import Generation


class Output:
    """Where samples are written. One row more than samples takes what dead rows of a batch still produce."""

    def __init__(self, count: int, width: int, pad_id: int, device: torch.device) -> None:
        self.scratch = count
        self._responses = torch.full((count + 1, width), pad_id, dtype=torch.long, device=device)
        self._log_probs = torch.zeros(count + 1, width, device=device)
        self._lengths = torch.full((count + 1,), width, dtype=torch.long, device=device)
        self._finish = torch.full((count + 1,), TRUNCATED, dtype=torch.long, device=device)

    def write(self, samples: Tensor, position: int, tokens: Tensor, log_probs: Tensor) -> None:
        self._responses[samples, position] = tokens
        self._log_probs[samples, position] = log_probs

    def stop(self, samples: Tensor, position: int) -> None:
        self._lengths[samples] = position + 1
        self._finish[samples] = STOPPED

    def generation(self) -> Generation:
        """All samples on the CPU, cut to the longest."""
        lengths = self._lengths[: self.scratch].cpu()
        width = int(lengths.max())
        return Generation(
            responses=self._responses[: self.scratch, :width].cpu().contiguous(),
            mask=torch.arange(width) < lengths[:, None],
            finish=self._finish[: self.scratch].cpu().contiguous(),
            log_probs=self._log_probs[: self.scratch, :width].cpu().contiguous(),
        )
