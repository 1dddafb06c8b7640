"""Sources and their counts, on every engine."""
