"""The hierarchy itself: codes, leaf counts, the leaf of NULL, digests, and what `check` finds."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qblock.errors import InputError
from qblock.hierarchy import Hierarchy, HierarchyError, Problem, from_csv, from_rows, write_csv

ZIP = Hierarchy(
    "zip",
    ("zip", "zip_1", "zip_2", "zip_any"),
    (
        ("13053", "13068", "14850", "14853"),
        ("1305*", "1306*", "1485*", "1485*"),
        ("130**", "130**", "1485*", "1485*"),
        ("*", "*", "*", "*"),
    ),
)


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "zip.csv"
    path.write_bytes(text.encode("utf-8"))
    return path


def problems(tmp_path: Path, text: str) -> list[str]:
    """The messages for a file, each as LINE: message."""
    path = written(tmp_path, text)
    with pytest.raises(InputError) as caught:
        from_csv(path)
    lines = str(caught.value).splitlines()
    assert all(line.startswith(f"{path}:") for line in lines)
    return [line.removeprefix(f"{path}:").strip() for line in lines]


@st.composite
def nested(draw: st.DrawFn) -> Hierarchy:
    """A random nested hierarchy: each level merges labels of the one below."""
    leaves = draw(st.lists(st.text("abxyz*", min_size=1, max_size=4), unique=True, min_size=1, max_size=12))
    columns = [leaves]
    for level in range(draw(st.integers(0, 3))):
        parents = {label: draw(st.integers(0, 3)) for label in sorted(set(columns[-1]))}
        columns.append([f"{level}/{parents[label]}" for label in columns[-1]])
    rows = list(zip(*columns, strict=True))
    return from_rows([f"level{i}" for i in range(len(columns))], rows)


def test_codes_are_the_smallest_leaf_of_the_label():
    assert ZIP.codes.tolist() == [[0, 1, 2, 3], [0, 1, 2, 2], [0, 0, 2, 2], [0, 0, 0, 0]]
    assert ZIP.codes.dtype == np.int32
    assert ZIP.height == 3


def test_leaves_under():
    assert [ZIP.leaves_under(level).tolist() for level in range(4)] == [
        [1, 1, 1, 1],
        [1, 1, 2, 2],
        [2, 2, 2, 2],
        [4, 4, 4, 4],
    ]


@given(nested())
def test_a_code_looked_up_as_a_leaf_gives_every_coarser_code(hierarchy: Hierarchy):
    codes = hierarchy.codes
    for fine in range(hierarchy.height + 1):
        for coarse in range(fine, hierarchy.height + 1):
            assert (codes[coarse][codes[fine]] == codes[coarse]).all()
            assert (hierarchy.leaves_under(coarse) >= hierarchy.leaves_under(fine)).all()


@given(nested(), st.randoms(use_true_random=False))
def test_codes_and_digest_follow_the_labels_in_any_order(hierarchy: Hierarchy, shuffler: random.Random):
    order = list(range(len(hierarchy.leaves)))
    shuffler.shuffle(order)
    other = hierarchy.select(order)
    assert other.digest() == hierarchy.digest()
    for level in range(hierarchy.height + 1):
        labels = other.labels[level]
        for leaf, code in enumerate(other.codes[level].tolist()):
            assert code == labels.index(labels[leaf])


@given(nested())
def test_a_random_nested_hierarchy_passes_and_survives_its_file(hierarchy: Hierarchy):
    assert hierarchy.check() == []
    with tempfile.TemporaryDirectory() as folder:
        write_csv(hierarchy, Path(folder) / "a.csv")
        assert from_csv(Path(folder) / "a.csv") == hierarchy


@given(nested(), st.data())
def test_moving_one_leaf_to_another_parent_is_found(hierarchy: Hierarchy, data: st.DataObject):
    """Change one leaf's label at a level where its label below is shared: the label then has two parents."""
    shared = [
        (level, leaf)
        for level in range(2, hierarchy.height)
        for leaf in range(len(hierarchy.leaves))
        if hierarchy.leaves_under(level - 1)[leaf] > 1
    ]
    if not shared:
        return
    level, leaf = data.draw(st.sampled_from(shared))
    labels = [list(column) for column in hierarchy.labels]
    labels[level][leaf] = "elsewhere"
    found = Hierarchy("a", hierarchy.level_names, tuple(tuple(column) for column in labels)).check()
    assert any("a label has one parent" in problem.message for problem in found)


def test_digest_tells_labels_and_names_apart():
    changed = Hierarchy("zip", ZIP.level_names, (*ZIP.labels[:2], ("130**", "130**", "14***", "14***"), ZIP.labels[3]))
    renamed = Hierarchy("zip", ("zip", "a", "b", "c"), ZIP.labels)
    assert len({ZIP.digest(), changed.digest(), renamed.digest(), ZIP.add_null_leaf().digest()}) == 4


def test_null_leaf_is_a_block_of_its_own_below_the_top():
    hierarchy = ZIP.add_null_leaf()
    assert hierarchy.leaves[-1] is None
    assert [hierarchy.shown(level)[-1] for level in range(4)] == ["*"] * 4
    assert hierarchy.codes[:, -1].tolist() == [4, 4, 4, 0]
    assert hierarchy.check() == []
    assert hierarchy.add_null_leaf() is hierarchy
    assert hierarchy.codes[:, :4].tolist() == ZIP.codes.tolist()


def test_null_leaf_is_refused_beside_a_leaf_that_reads_the_same():
    with pytest.raises(InputError, match=r"hierarchy of mark: a leaf `\*` reads like NULL"):
        from_rows(["mark"], [["*"], ["+"]]).add_null_leaf()


def test_uncovered_values_in_their_order():
    assert ZIP.uncovered(["9", "13053", "1"]) == ["9", "1"]


def test_check_names_label_and_both_parents():
    labels = (*ZIP.labels[:2], ("130**", "130**", "148**", "149**"), ZIP.labels[3])
    assert Hierarchy("zip", ZIP.level_names, labels).check() == [
        Problem(
            4,
            "label '1485*' of zip_1 is under '148**' on row 3 and under '149**' here (zip_2); a label has one parent",
        )
    ]


def test_check_of_a_hierarchy_without_top():
    found = Hierarchy("zip", ZIP.level_names[:3], ZIP.labels[:3]).check()
    assert found == [Problem(1, "the last level, zip_2, is not `*` for every leaf ('130**'); add a level of `*`")]


def test_check_of_nothing():
    assert "no leaf" in Hierarchy("zip", ("zip",), ((),)).check()[0].message


def test_csv_with_byte_order_mark_quotes_and_blank_lines(tmp_path: Path):
    hierarchy = from_csv(written(tmp_path, '\ufeffjob,group\r\n"Clerk, senior",Office\r\n\r\n"a ""b""",Office\r\n'))
    assert hierarchy.attribute == "job"
    assert hierarchy.level_names == ("job", "group", "job_any")
    assert hierarchy.labels == (("Clerk, senior", 'a "b"'), ("Office", "Office"), ("*", "*"))


def test_attribute_named_by_the_caller(tmp_path: Path):
    hierarchy = from_csv(written(tmp_path, "leaf,group\na,g\n"), attribute="job")
    assert (hierarchy.attribute, hierarchy.level_names) == ("job", ("leaf", "group", "job_any"))


def test_every_hierarchy_ends_in_one_star(tmp_path: Path):
    assert from_csv(written(tmp_path, "a,b,c\n1,x,*\n2,y,*\n")).height == 2
    assert from_csv(written(tmp_path, "a,b\n1,x\n2,x\n")).labels[2] == ("*", "*")
    assert from_csv(written(tmp_path, "a\n*\n")).labels == (("*",), ("*",))
    assert from_csv(written(tmp_path, "a,a_any\n1,x\n")).level_names == ("a", "a_any", "a_any_")


def test_all_problems_of_a_file_with_their_lines(tmp_path: Path):
    text = "zip,zip_1,zip_2\n1,a,x\n2,a,y\n1,a,x\n,b,x\n3,,x\n4,c\n5,d,x,z\n"
    assert problems(tmp_path, text) == [
        "3: label 'a' of zip_1 is under 'x' on line 2 and under 'y' here (zip_2); a label has one parent",
        "4: duplicate leaf '1', first on line 2; remove one",
        "5: the leaf is empty (column zip); write a value",
        "6: the label of level 1 (zip_1) is empty; write one",
        "7: 2 columns where the header has 3; write one label for each level",
        "8: 4 columns where the header has 3; write one label for each level",
    ]


def test_nothing_is_above_the_star(tmp_path: Path):
    assert problems(tmp_path, "a,b,c,d\n1,*,x,*\n2,y,x,*\n") == ["2: `*` of b is under 'x' (c); nothing is above `*`"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("a,b\n", "there is no leaf"),
        ("a,a\n1,x\n", "1: every level needs a name"),
        ("a,\n1,x\n", "1: every level needs a name"),
        ('a,b\n"1,x\n', "2: not CSV: unexpected end of data"),
        ('a,b\n1,x\n"2"y,z\n', "3: not CSV: ',' expected after"),
    ],
)
def test_files_that_are_no_hierarchy(tmp_path: Path, text: str, message: str):
    assert message in problems(tmp_path, text)[0]


def test_files_that_cannot_be_read(tmp_path: Path):
    with pytest.raises(InputError, match="absent\\.csv: the hierarchy file cannot be read: No such file"):
        from_csv(tmp_path / "absent.csv")
    (tmp_path / "latin.csv").write_bytes("größe\n".encode("latin-1"))
    with pytest.raises(InputError, match=r"latin\.csv: not UTF-8 \(byte 2\)"):
        from_csv(tmp_path / "latin.csv")


def test_long_lists_of_problems_are_cut_but_kept(tmp_path: Path):
    path = written(tmp_path, "a,b\n" + "1,x\n" * 50)
    with pytest.raises(HierarchyError) as caught:
        from_csv(path)
    assert len(caught.value.problems) == 49
    assert str(caught.value).splitlines()[-1] == f"{path}: and 29 more problems"


def test_rows_of_a_table_name_the_row():
    with pytest.raises(HierarchyError, match=r"table d\.zip, row 2: the leaf is empty"):
        from_rows(["a", "b"], [("1", "x"), (None, "x")], origin="table d.zip")


def test_a_file_round_trip(tmp_path: Path):
    path = tmp_path / "out.csv"
    write_csv(ZIP.add_null_leaf(), path)
    assert path.read_text("utf-8").splitlines()[:2] == ["zip,zip_1,zip_2,zip_any", "13053,1305*,130**,*"]
    assert from_csv(path) == ZIP


def test_a_large_file_is_checked_without_comparing_all_pairs():
    """100,000 leaves, all in one wrong parent's neighbourhood: quadratic loops would not end within the test run."""
    rows = [(str(i), f"g{i // 2}", f"h{i // 1000}") for i in range(100_000)]
    rows[99_999] = ("99999", "g49999", "h0")
    with pytest.raises(HierarchyError) as caught:
        from_rows(["a", "b", "c"], rows)
    assert [problem.line for problem in caught.value.problems] == [100_000]


def test_worked_examples_and_census_hierarchies_are_sound(shared: Path):
    files = [*shared.glob("golden/*hierarchy*.csv"), *shared.glob("data/adult/hierarchies/*.csv")]
    assert len(files) == 12
    for file in files:
        hierarchy = from_csv(file)
        assert hierarchy.check() == []
        assert set(hierarchy.labels[-1]) == {"*"}


def test_height_of_the_worked_examples(shared: Path):
    heights = {
        name: from_csv(shared / "data/adult/hierarchies" / f"{name}.csv").height
        for name in ("age", "gender", "race", "marital_status", "education")
    }
    assert heights == {"age": 4, "gender": 1, "race": 1, "marital_status": 2, "education": 3}
