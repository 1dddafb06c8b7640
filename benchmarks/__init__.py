"""What searches and runs of the job take, in units of one GROUP BY of the same table (docs/performance.md)."""
