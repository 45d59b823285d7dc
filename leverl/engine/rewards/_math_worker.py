"""The child of `_verifier.py`: reads [answer, truth], writes {"equal": …} or {"error": …}, as JSON lines."""

import json
import logging
import os
import resource
import sys
from functools import lru_cache
from typing import Any

_MEMORY_BYTES = 4 * 2**30  # what an unbounded power may take before it is a MemoryError


def main() -> None:
    """Answer until the input ends, which it does with the parent."""
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # parsers print to stdout, where the parent expects replies
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = _MEMORY_BYTES if hard == resource.RLIM_INFINITY else min(_MEMORY_BYTES, hard)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
    logging.disable(logging.CRITICAL)  # the package logs each expression that it cannot parse
    import math_verify  # optional, and slow: only this process has it

    _say(replies, {"ready": True})
    for line in sys.stdin:
        answer, truth = json.loads(line)
        _say(replies, _compare(math_verify, answer, truth))


def _say(replies: Any, reply: dict[str, object]) -> None:
    replies.write(json.dumps(reply) + "\n")
    replies.flush()


def _compare(package: Any, answer: str, truth: str) -> dict[str, object]:
    wanted = _parse(package, truth)
    if not wanted or all(isinstance(part, str) for part in wanted):
        return {"error": f"the ground truth {truth!r} is not an expression that math-verify can parse"}
    # No alarm: the parent keeps the time. Exceptions of sympy mean "not equal" to the package.
    given = _parse(package, answer)
    return {"equal": bool(package.verify(wanted, given, timeout_seconds=None))}


@lru_cache(maxsize=256)
def _parse(package: Any, expression: str) -> Any:
    return package.parse(f"${expression}$", parsing_timeout=None)


if __name__ == "__main__":
    main()
