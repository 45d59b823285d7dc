"""What a study is going to do, before it does it."""

from typing import Any

from leverl.report.numbers import exact, plural
from leverl.report.scales import range_words
from leverl.tune.model import History, LeverAxis
from leverl.tune.plan import Plan


def facts(plan: Plan, parallel: int) -> dict[str, Any]:
    """The plan as data: target, space, constraints and runs per phase."""
    study = plan.study
    planned = dict(plan.strategy.planned(History((), study.maximize)))
    return {
        "name": study.name,
        "folder": plan.folder,
        "target": study.target.leverl,
        "settings": study.target.set,
        "strategy": study.strategy,
        "sampler": plan.strategy.sampler.name,
        "objective": study.objective.model_dump(),
        "space": plan.space.view(),
        "left_out": plan.space.left_out,
        "constraints": study.constraints,
        "seeds": {phase: plan.study.seeds_of(phase) for phase in planned},
        "runs": planned,
        "steps": plan.steps,
        "budget": study.budget.model_dump(),
        "parallel": parallel,
    }


def describe(plan: Plan, parallel: int) -> str:
    """The plan in lines for people."""
    study, axes = plan.study, plan.space.view()
    planned = plan.strategy.planned(History((), study.maximize))
    width = max(len(axis.name) for axis in axes)
    settings = "".join(f" {name}={_word(value)}" for name, value in study.target.set.items())
    phases = ", ".join(f"{phase} {count}" for phase, count in planned.items() if count)
    hours = study.budget.hours
    limit = f", at most {exact(hours)} h" if hours is not None else ""
    return "\n".join(
        [
            f"study        {study.name} → {plan.folder}",
            f"target       {study.target.leverl}{settings}",
            f"strategy     {study.strategy} ({plan.strategy.sampler.name}), {study.objective.goal} "
            f"{study.objective.name}",
            *(f"{'space' if n == 0 else '':12} {_axis(axis, width)}" for n, axis in enumerate(axes)),
            *_left_out(plan),
            *(f"constraint   {text}" for text in study.constraints),
            f"runs         {phases}: {plural(sum(planned.values()), 'run')} of "
            f"{plural(plan.steps, 'step')}, {parallel} side by side{limit}",
        ]
    )


def _axis(axis: LeverAxis, width: int) -> str:
    return f"{axis.name:{width}}  {range_words(axis)}  [base {exact(axis.base)}]"


def _left_out(plan: Plan) -> list[str]:
    """Levers of the default space that are not searched, and why."""
    found = plan.space.left_out
    width = max(map(len, found), default=0)
    return [
        f"{'left out' if number == 0 else '':12} {name:{width}}  {reason}"
        for number, (name, reason) in enumerate(found.items())
    ]


def _word(value: Any) -> str:
    return exact(value) if isinstance(value, bool | int | float | str) else str(value)
