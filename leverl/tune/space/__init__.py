"""What may be tried: levers with their ranges, constraints and priors."""
