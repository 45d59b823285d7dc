"""What is known of a study's configurations, as a model; independent of which sampler proposed the runs.

- `measurement`: one run as the model sees it (`Measurement`); `from_history.measurements` reads them off a history.
- `model.fit(axes, found, seed=…)`: the `Surrogate` with posterior, noise, feasibility, leave-one-out, importance.
- `propose.propose(axes, found, admit=…, candidates=…, seed=…, n=…)`: what to run next; needs no study and no history.

Values are larger-is-better throughout: the caller flips the sign of an objective to minimise.
"""
