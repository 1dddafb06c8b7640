"""The worked examples, asked of the engine."""

import pytest

pytest.register_assert_rewrite(
    *(f"golden.{name}" for name in ("asking", "check_adversary", "check_closeness", "check_diversity"))
)
