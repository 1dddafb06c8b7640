"""From a spec to an answer, on every engine."""
