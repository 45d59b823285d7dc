"""The methods that are compared, by the names that results have them under."""

from collections.abc import Mapping
from typing import Any, Final

from .method import Method

LEVERL: Final = "leverl"
GRID: Final = "grid"
GRID_3: Final = "grid ×3"
PEERS: Final = ("random", "Optuna TPE", "Optuna GP", "Ax", "SMAC", "SMAC 1 seed")

_OWN: Final[Mapping[str, Any]] = {"module": "methods.leverl_study", "plans": True, "packages": ("botorch",)}
_OPTUNA: Final[Mapping[str, Any]] = {"module": "methods.optuna_peer", "packages": ("optuna",)}
_SMAC: Final[Mapping[str, Any]] = {"module": "methods.smac_peer", "plans": True, "packages": ("smac",)}

METHODS: Final[Mapping[str, Method]] = {
    method.name: method
    for method in (
        Method(LEVERL, **_OWN),
        Method("leverl random", options={"strategy": "random"}, **_OWN),
        Method("leverl +grid", options={"strategy": "bayes+grid"}, **_OWN),
        Method("leverl +stopping", options={"stopping": True, "budgets": (27,)}, curves=True, **_OWN),
        Method(GRID, "methods.grid", plans=True),
        Method(GRID_3, "methods.grid", {"seeds": 3}, plans=True),
        Method("random", options={"sampler": "random"}, **_OPTUNA),
        Method("Optuna TPE", options={"sampler": "tpe"}, **_OPTUNA),
        Method("Optuna GP", options={"sampler": "gp"}, **_OPTUNA),
        Method("Ax", "methods.ax_peer", packages=("ax-platform", "botorch")),
        Method("SMAC", **_SMAC),
        Method("SMAC 1 seed", options={"deterministic": True}, **_SMAC),
    )
}
