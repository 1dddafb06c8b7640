"""What becomes visible of a version: its copy, the recheck of it, and the place that readers see."""
