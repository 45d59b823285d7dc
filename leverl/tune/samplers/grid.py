"""Grid search: every combination of the values listed, in a fixed order."""

from leverl.errors import ConfigError
from leverl.tune.model import History, Params, Sampler
from leverl.tune.samplers._draw import first_new
from leverl.tune.space.space import Space, key


class GridSampler:
    """Goes through the cells in order and skips those that were tried or cannot run."""

    name = "cell by cell"

    def suggest(self, space: Space, history: History, n: int) -> list[Params]:
        """The next `n` cells; none when the grid is done.

        Raises:
            ConfigError: a lever has a range instead of values, or no cell can run.
        """
        endless = [axis.name for axis in space.axes if not axis.finite]
        if endless:
            raise ConfigError(
                f"strategy grid needs the values of {', '.join(endless)}, not a range. "
                f"Write {endless[0]}: [..., ...], or choose strategy: bayes."
            )
        tried = space.tried(history)
        suggestions: list[Params] = []
        for _ in range(n):
            found = first_new(space, space.cells(), tried)
            if found is None:
                break
            suggestions.append(found)
            tried.add(key(found))
        return suggestions


def create(seed: int) -> Sampler:  # noqa: ARG001 - a grid has no chance in it
    """A sampler for a study with this seed."""
    return GridSampler()
