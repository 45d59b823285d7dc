"""What a report says about a study beyond its runs: numbers only, from space and history.

- `result`: the numbers, as frozen dataclasses of plain floats in the unit and direction of the objective.
- `analyse.analyse(space, history)`: all of them; seconds, so only where a report is written.
"""
