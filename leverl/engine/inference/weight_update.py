"""A weight update in progress: each weight of the sampler must come exactly once."""

from torch import Tensor

from leverl.errors import TrainingFailed


class WeightUpdate:
    """A weight update in progress: what is expected and what has come."""

    def __init__(self, version: int, expected: dict[str, Tensor]) -> None:
        self.version = version
        self._missing = expected
        self._names = frozenset(expected)

    def take(self, name: str, tensor: Tensor) -> Tensor:
        """The tensor to write `tensor` to."""
        if name not in self._names:
            raise TrainingFailed(
                f"weight sync: the sampler has no weight '{name}'. It has {len(self._names)}, such as "
                f"'{min(self._names)}'; trainer and sampler must be the same architecture, tied weights "
                "included."
            )
        if name not in self._missing:
            raise TrainingFailed(f"weight sync: '{name}' came twice in version {self.version}.")
        target = self._missing.pop(name)
        if target.shape != tensor.shape:
            raise TrainingFailed(
                f"weight sync: '{name}' has shape {tuple(tensor.shape)} in the trainer and "
                f"{tuple(target.shape)} in the sampler."
            )
        return target

    def check_complete(self) -> None:
        if self._missing:
            raise TrainingFailed(
                f"weight sync: {len(self._missing)} of {len(self._names)} weights of version {self.version} "
                f"never came, the first is '{next(iter(self._missing))}'. Nothing can be sampled until they "
                "have."
            )
