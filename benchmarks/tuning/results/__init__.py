"""What was measured: kept on disk, in numbers, as text and as figures."""
