"""What tuners are compared on: families of tasks on which a run costs nothing."""
