"""What the runs of a study show: noise, standings, the race of the best, the verdict."""
