"""Runs in flight: started, watched, read, ended."""
