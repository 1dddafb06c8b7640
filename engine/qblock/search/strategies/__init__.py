"""Ways to find the satisfying nodes of a lattice; each asks an evaluator, and knows no database."""
