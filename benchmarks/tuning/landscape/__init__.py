"""Our own landscapes: the grid that `record.py` trains, and what was recorded of it."""
