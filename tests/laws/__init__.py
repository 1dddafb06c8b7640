"""Laws that every registered model must obey: agreement with the slow reference, monotonicity, invariance, order."""
