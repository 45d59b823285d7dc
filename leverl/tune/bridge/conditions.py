"""Which parameters a trial will ask for, learnt from those that earlier trials asked for.

In a define-by-run study the objective decides: `if kind == "a": suggest("x", …)`. A parameter that some trials lack
is taken to depend on a choice whose values tell the trials with it from those without.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from leverl.tune.model import Params, ParamValue


@dataclass(frozen=True)
class Condition:
    """The parameter is asked for unless `parent` has one of the values `off`, or is not asked for itself."""

    parent: str
    off: frozenset[ParamValue]


def learn_conditions(asked: Sequence[Params], countable: Mapping[str, int]) -> dict[str, Condition]:
    """Conditional parameters and what they depend on.

    Args:
        asked: the parameters of trials that ran to their end.
        countable: parameters that others may depend on, with their number of values.
    """
    presence = {name: sum(name in params for params in asked) for params in asked for name in params}
    found: dict[str, Condition] = {}
    for name, count in presence.items():
        if count == len(asked):
            continue
        parents = [
            parent
            for parent in countable
            if presence.get(parent, 0) > count and _decides(parent, name, asked)
        ]
        if parents:  # one that is always there, else the one with the fewest values
            parent = min(parents, key=lambda one: (presence[one] < len(asked), countable[one], one))
            found[name] = Condition(parent, _without(parent, name, asked))
    return found


def active(params: Params, conditions: Mapping[str, Condition]) -> Params:
    """`params` without those that will not be asked for. One never seen either way stays."""
    return {name: value for name, value in params.items() if _asked_for(name, params, conditions)}


def _asked_for(name: str, params: Params, conditions: Mapping[str, Condition]) -> bool:
    condition = conditions.get(name)
    if condition is None:
        return True
    if condition.parent not in params or not _asked_for(condition.parent, params, conditions):
        return False
    return params[condition.parent] not in condition.off


def _decides(parent: str, name: str, asked: Sequence[Params]) -> bool:
    """Whether no value of `parent` was seen both with and without `name`, and `name` never without `parent`."""
    on = {params[parent] for params in asked if name in params and parent in params}
    orphans = any(name in params and parent not in params for params in asked)
    return bool(on) and not orphans and not on & _without(parent, name, asked)


def _without(parent: str, name: str, asked: Sequence[Params]) -> frozenset[ParamValue]:
    return frozenset(params[parent] for params in asked if name not in params and parent in params)
