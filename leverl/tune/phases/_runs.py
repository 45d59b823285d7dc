"""How phases name their runs and find them again."""

from leverl.tune.model import History, Params, Run


def has_run(history: History, config_id: str, seed: int) -> bool:
    """Whether the configuration was started with this seed."""
    return any(state.run.seed == seed for state in history.of(config_id))


def run_of(config_id: str, params: Params, seed: int, until: int, phase: str) -> Run:
    """A run; its id is the configuration's number and the seed."""
    return Run(f"{config_id.removeprefix('c')}-s{seed}", config_id, params, seed, until, phase)


def fresh(seeds: tuple[int, ...], history: History, phase: str) -> tuple[int, ...]:
    """`seeds`, or as many after them, such that no run of another phase has used one: not even of an earlier round."""
    used = {state.run.seed for state in history.runs if state.run.phase != phase}
    while used.intersection(seeds):
        seeds = tuple(seed + len(seeds) for seed in seeds)
    return seeds
