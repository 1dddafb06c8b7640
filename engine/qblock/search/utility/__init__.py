"""The metrics of the nodes of a search (qblock.metrics), with no more counts fetched than they need."""
