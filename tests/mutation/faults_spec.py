"""Faults in reading a spec: what it does not say, says twice or says to everybody."""

from __future__ import annotations

from mutation.mutation import Mutation

LOAD = "tests/spec/test_spec_load.py"
WRONG = "tests/spec/test_spec_wrong.py::test_what_is_wrong"

SPEC: tuple[Mutation, ...] = (
    Mutation(
        "spec: an unknown key is left out",
        "spec/sources.py",
        'extra="forbid",',
        'extra="ignore",',
        tests=(WRONG,),
    ),
    Mutation(
        "spec: an unknown parameter of a model is left out",
        "spec/privacy.py",
        '            document.wrong(path, f"{key} is not a parameter of {model.name}; {choices(valid, key)}")\n',
        "",
        tests=("tests/spec/test_spec_privacy.py",),
    ),
    Mutation(
        "spec: the last of two keys counts",
        "spec/document.py",
        "            if name in first:\n",
        '            if name in first and path == ("attributes",):\n',
        tests=(WRONG,),
    ),
    Mutation(
        "suppression: every row may go",
        "spec/model.py",
        "    return max(0, min(allowed, rows - 1))",
        "    return max(0, min(allowed, rows))",
        tests=(f"{LOAD}::test_suppressed_rows_allowed",),
    ),
    Mutation(
        "suppression: a share is rounded up",
        "spec/model.py",
        "else int(limit * rows)\n",
        "else -int(-limit * rows // 1)\n",
        tests=(f"{LOAD}::test_suppressed_rows_allowed",),
    ),
    Mutation(
        "entity: who a row is about is published",
        "spec/checks.py",
        '    if role not in (None, "identifying"):',
        '    if role not in (None, "identifying", "insensitive"):',
        tests=(WRONG,),
    ),
    Mutation(
        "digest: of a requirement without its attribute",
        "spec/digest.py",
        'Requirement: ("line", "index", "model", "groups", "of_rows"),',
        'Requirement: ("line", "index", "model", "groups", "of_rows", "sensitive"),',
        tests=("tests/spec/test_spec_digest.py::test_a_digest_never_moves",),
    ),
    Mutation(
        "numbers: through a double",
        "spec/document.py",
        "else Fraction(text))",
        "else Fraction(float(text)))",
        tests=(f"{LOAD}::test_a_decimal_fraction_is_exact",),
    ),
    Mutation(
        "messages: a value of the source is shown",
        "spec/document.py",
        '            return quoted(self.raw.get(path, ""), "a value of this list")\n',
        '            return repr(self.raw.get(path, ""))\n',
        tests=("tests/spec/test_spec_environment.py::test_a_value_of_the_source_is_named_at_a_terminal_alone",),
    ),
)
