"""Optuna says a line for each study it creates; here it does not."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quiet_optuna() -> Iterator[None]:
    """Only Optuna's warnings and errors are logged inside."""
    import optuna

    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)
