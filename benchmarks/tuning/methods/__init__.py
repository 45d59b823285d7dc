"""What is compared: leverl, grids, and tuners of other packages."""
