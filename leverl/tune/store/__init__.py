"""What a study keeps on the disk, and what happens when the disk says no."""
