"""A pytest plugin for runs against faults: that a test fails matters, not the smallest case for which it does."""

from __future__ import annotations

from hypothesis import Phase, settings

settings.register_profile("unshrunk", phases=[Phase.explicit, Phase.generate], report_multiple_bugs=False)
settings.load_profile("unshrunk")
