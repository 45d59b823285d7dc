"""Regrets as markdown: tables for tasks and families, and what is left of the claims."""

import math
from collections.abc import Iterator, Sequence

from methods.catalogue import GRID, GRID_3, LEVERL, METHODS, PEERS
from methods.method import TOLD

from .shards import Shard
from .statistics import (
    Entry,
    Estimate,
    Regrets,
    Task,
    average_ranks,
    bootstrap,
    differences,
    mean_and_error,
    mean_over,
    per_suggestion,
    samples_of,
    wins,
)

HALF, WHOLE = TOLD
NOT_ABOVE = 0.01
"""How much more regret than the three-seed grid the claim allows."""

FAMILIES_CLAIMED = 3
GRIDS = (GRID, GRID_3)


def report(shards: Sequence[Shard]) -> str:
    """Everything, from what there is."""
    regrets = Regrets(shards)
    parts = [
        "## Claims",
        *claims(regrets),
        f"## Regret after {HALF} and {WHOLE} runs, by family",
        *(family_tables(regrets)),
        f"## {LEVERL} against the others, paired",
        difference_table(regrets),
        "## Average rank",
        rank_table(regrets),
        "## By task",
        *(task_tables(regrets)),
    ]
    return "\n\n".join(parts)


# Claims


def claims(regrets: Regrets) -> list[str]:
    """The three claims, each with whether it holds in what was measured, and with what by how much."""
    return [
        _against_grid(regrets),
        _against_three_seeds(regrets),
        *(_against_peers(regrets, budget) for budget in TOLD),
    ]


def _against_grid(regrets: Regrets) -> str:
    found = _by_family(regrets, Entry(LEVERL, HALF), Entry(GRID))
    below = [family for family, value in found.items() if value.mean < 0]
    clearly = [family for family in below if found[family].high < 0]
    verdict = _verdict(len(below) >= FAMILIES_CLAIMED, len(found))
    head = (
        f"**{HALF} runs below the single-seed grid in at least {FAMILIES_CLAIMED} families: {verdict}** It is below in "
        f"{len(below)} of {len(found)}, in {len(clearly)} of them with the whole interval."
    )
    lines = [
        f"- {family}: {_words(value)}{'' if value.mean < 0 else ': not below'}"
        for family, value in found.items()
    ]
    return "\n".join([head, "", *lines])


def _against_three_seeds(regrets: Regrets) -> str:
    found = _by_family(regrets, Entry(LEVERL, WHOLE), Entry(GRID_3))
    above = {family: value.mean - NOT_ABOVE for family, value in found.items() if value.mean > NOT_ABOVE}
    sure = [family for family, value in found.items() if value.high <= NOT_ABOVE]
    verdict = _verdict(not above, len(found))
    head = (
        f"**{WHOLE} runs not above the three-seed grid by more than {NOT_ABOVE:g}: {verdict}** "
        f"It holds in {len(found) - len(above)} of {len(found)} families, in {len(sure)} with the whole interval."
    )
    lines = [
        f"- {family}: {_words(value)}" + (f": {above[family]:.4f} more than that" if family in above else "")
        for family, value in found.items()
    ]
    return "\n".join([head, "", *lines])


def _against_peers(regrets: Regrets, budget: int) -> str:
    peers = _present(regrets, PEERS)
    found = average_ranks(regrets, [LEVERL, *peers], budget) if LEVERL in regrets.methods else {}
    if not peers or not found:
        return f"**Average rank after {budget} runs not worse than the best peer's: not measured.**"
    best = min(peers, key=lambda peer: found[peer])
    verdict = _verdict(found[LEVERL] <= found[best] + 1e-9, len(regrets.families), needed=1)
    head = (
        f"**Average rank after {budget} runs not worse than the best peer's: {verdict}** {LEVERL} {found[LEVERL]:.2f}, "
        f"{best} {found[best]:.2f} (of {len(peers) + 1})."
    )
    losses = _losses(regrets, peers, budget) or ["- No peer has less regret on any task."]
    return "\n".join([head, "", *losses])


def _losses(regrets: Regrets, peers: Sequence[str], budget: int) -> list[str]:
    """Where a peer has less mean regret, and by how much; the largest first."""
    found: list[tuple[float, str]] = []
    for task in regrets.tasks:
        for peer in peers:
            samples = differences(regrets, Entry(LEVERL, budget), Entry(peer, budget), [task])
            if samples and (value := bootstrap(samples)).mean > 0:
                sure = "" if value.low > 0 else ", not sure"
                line = f"- {'/'.join(task)}: {peer} has less by {value.mean:.4f}"
                found.append((value.mean, f"{line} [{value.low:+.4f}, {value.high:+.4f}]{sure}"))
    return [line for _, line in sorted(found, key=lambda one: -one[0])]


def _by_family(regrets: Regrets, one: Entry, two: Entry) -> dict[str, Estimate]:
    found = {}
    for family in regrets.families:
        samples = differences(regrets, one, two, regrets.tasks_of(family))
        if samples:
            found[family] = bootstrap(samples)
    return found


def _verdict(holds: bool, measured: int, needed: int = FAMILIES_CLAIMED) -> str:
    if measured < needed:
        return f"not to be judged yet, {measured} families are measured."
    return "holds." if holds else "does not hold."


def _words(value: Estimate) -> str:
    return f"{value.mean:+.4f} [{value.low:+.4f}, {value.high:+.4f}]"


# Tables


def family_tables(regrets: Regrets) -> Iterator[str]:
    for family in regrets.families:
        tasks = regrets.tasks_of(family)
        yield f"### {family} ({', '.join(name for _, name in tasks)})\n\n{regret_table(regrets, tasks)}"


def task_tables(regrets: Regrets) -> Iterator[str]:
    for task in regrets.tasks:
        yield f"### {' / '.join(task)}\n\n{regret_table(regrets, [task])}"


def regret_table(regrets: Regrets, tasks: Sequence[Task]) -> str:
    """Mean regret ± standard error of every method; in brackets runs, or work in whole runs, where it took less."""
    rows = [
        f"| method | after {HALF} | after {WHOLE} | at its end | repeats | CPU s a run |",
        "|---|---|---|---|---|---|",
    ]
    for method in _present(regrets, list(METHODS)):
        samples = samples_of(regrets, Entry(method), tasks)
        if not samples:
            continue
        cells = [_regret(regrets, Entry(method, budget), tasks) for budget in TOLD]
        end = _regret(regrets, Entry(method), tasks, show_runs=True) if method in GRIDS else ""
        if method in GRIDS:
            cells = ["", ""]
        repeats = sorted({len(values) for values in samples})
        count = f"{repeats[0]}–{repeats[-1]}" if len(repeats) > 1 else f"{repeats[0]}"
        seconds = per_suggestion(regrets, method, tasks)
        rows.append(f"| {method} | {' | '.join(cells)} | {end} | {count} | {seconds:.3f} |")
    return "\n".join(rows)


def _regret(regrets: Regrets, entry: Entry, tasks: Sequence[Task], *, show_runs: bool = False) -> str:
    samples = samples_of(regrets, entry, tasks)
    if not samples:
        return ""
    mean, error = mean_and_error(samples)
    text = f"{mean:.4f}" if math.isnan(error) else f"{mean:.4f} ± {error:.4f}"
    work = mean_over(regrets, entry, tasks, "run_lengths") or 0.0
    if show_runs or (entry.budget is not None and work < entry.budget - 0.05):
        text += f" ({work:.3g} runs)"
    return text


def difference_table(regrets: Regrets) -> str:
    """leverl's regret minus another's: negative is leverl's gain."""
    rows = [
        f"| family | {LEVERL} after | against | difference [95 %] | wins, ties, losses |",
        "|---|---|---|---|---|",
    ]
    rivals = [(HALF, Entry(GRID)), (WHOLE, Entry(GRID)), (WHOLE, Entry(GRID_3))]
    rivals += [(budget, Entry(peer, budget)) for budget in TOLD for peer in PEERS]
    for family in regrets.families:
        for budget, rival in rivals:
            samples = differences(regrets, Entry(LEVERL, budget), rival, regrets.tasks_of(family))
            if samples:
                counts = ", ".join(str(count) for count in wins(samples))
                rows.append(
                    f"| {family} | {budget} | {rival.method} | {_words(bootstrap(samples))} | {counts} |"
                )
    return "\n".join(rows)


def rank_table(regrets: Regrets) -> str:
    """Average ranks of leverl and its peers, by family and over all."""
    methods = _present(regrets, [LEVERL, *PEERS])
    rows = [
        f"| family | after | {' | '.join(methods)} |",
        f"|---|---|{'---|' * len(methods)}",
    ]
    for budget in TOLD:
        for family in (*regrets.families, None):
            found = average_ranks(regrets, methods, budget, family) if methods else {}
            if found:
                cells = " | ".join(f"{found[method]:.2f}" for method in methods)
                rows.append(f"| {family or 'all'} | {budget} | {cells} |")
    return "\n".join(rows)


def _present(regrets: Regrets, methods: Sequence[str]) -> list[str]:
    return [method for method in methods if method in regrets.methods]
