"""Trackers: one file each, found by name (`--track NAME`). They publish what run folders hold.

A tracker module has `create()`, which returns a `leverl.record.tracking.Tracker`.
"""
