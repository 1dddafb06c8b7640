"""What a program does with a release or its ledger; `qblock.api` has the names."""
