"""Search of the generalization lattice: strategies, choice among satisfying nodes, and utility metrics."""
