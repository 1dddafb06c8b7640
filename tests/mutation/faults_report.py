"""Faults in the report: figures of other rows, promises that are not kept, and what readers must not be given."""

from __future__ import annotations

from mutation.mutation import Mutation

READ = "tests/report/test_read.py"
RENDER = "tests/report/test_render.py"
INTERNAL = "tests/report/test_internal.py"

REPORT: tuple[Mutation, ...] = (
    Mutation(
        "workload: expected counts are those of all rows, suppressed ones among them",
        "search/utility.py",
        "        keys, rows = assessment.counts.keys[assessment.kept], assessment.counts.rows[assessment.kept]\n"
        '        return self._published(assessment.node, "query_error"',
        "        keys, rows = assessment.counts.keys, assessment.counts.rows\n"
        '        return self._published(assessment.node, "query_error"',
        tests=("tests/report/test_workload.py::test_suppressed_rows_are_missing_from_what_is_expected",),
    ),
    Mutation(
        "workload: the best queries instead of the worst",
        "report/workload.py",
        'np.argsort(-errors, kind="stable")',
        'np.argsort(errors, kind="stable")',
        tests=("tests/report/test_workload.py::test_the_worst_ten_are_named_as_they_are_written",),
    ),
    Mutation(
        "report: labels are not escaped",
        "report/render.py",
        'autoescape=lambda name: name is not None and name.endswith(".html.j2"),',
        "autoescape=False,",
        tests=(f"{RENDER}::test_a_label_is_a_text_whatever_it_says",),
    ),
    Mutation(
        "report: titles of marks are not escaped",
        "report/drawings.py",
        "<title>{escape(mark.title)}",
        "<title>{mark.title}",
        tests=(f"{RENDER}::test_a_label_is_a_text_whatever_it_says",),
    ),
    Mutation(
        "report: readers get what is internal",
        "report/read.py",
        "if internal or candidate else None",
        "if not candidate else None",
        tests=(f"{INTERNAL}::test_internal_pages_are_marked_and_readers_get_none",),
    ),
    Mutation(
        "report: a failed guarantee is no failure",
        "report/pages/verdict.py",
        "[guarantee.in_words for guarantee in shown.guarantees if not guarantee.holds]",
        "[guarantee.in_words for guarantee in shown.guarantees if guarantee.holds is None]",
        tests=(f"{RENDER}::test_a_guarantee_that_fails_is_the_verdict",),
    ),
    Mutation(
        "report: without a column the blocks stay as they are",
        "report/read.py",
        "task.lattice.heights[i] if i == j else 0",
        "0 if i == j else 0",
        tests=(f"{READ}::test_figures_are_those_of_the_published_rows",),
    ),
    Mutation(
        "report: the mean chance is of the blocks",
        "report/read.py",
        "mean = blocks / task.source.rows",
        "mean = 1 / blocks",
        tests=(f"{READ}::test_figures_are_those_of_the_published_rows",),
    ),
    Mutation(
        "report: what if asks the model that is dropped",
        "report/what_if.py",
        "if i != but)",
        "if i == i)",
        tests=(f"{INTERNAL}::test_other_questions_give_what_a_search_of_them_gives",),
    ),
    Mutation(
        "report: what if turns smaller and larger around",
        "report/what_if.py",
        'if bound.stricter == "larger":',
        'if bound.stricter == "smaller":',
        tests=(f"{INTERNAL}::test_other_questions_give_what_a_search_of_them_gives",),
    ),
    Mutation(
        "report: what if reads one lattice where rows are suppressed",
        "report/internal.py",
        "searched(task, candidates) if task.budget else what_if(candidates)",
        "what_if(candidates)",
        tests=(f"{INTERNAL}::test_other_questions_give_what_a_search_of_them_gives",),
    ),
    Mutation(
        "report: problems of a verification are dropped",
        "report/internal.py",
        "return tuple(verify(spec).problems)",
        "return tuple(verify(spec).problems[:0])",
        tests=(f"{INTERNAL}::test_problems_of_a_verification_are_said",),
    ),
    Mutation(
        "report: a kept copy that was altered is reported",
        "report/read.py",
        "if content_digest(session, rows, self.kept.columns) != self.event.content_digest:",
        "if False:",
        tests=(f"{INTERNAL}::test_a_kept_version_that_was_altered_is_not_reported",),
    ),
    Mutation(
        "report: an older version is told as the one that readers see",
        "report/pages/verdict.py",
        "if kept.current == kept.version:",
        "if kept.current is not None:",
        tests=(f"{INTERNAL}::test_a_version_that_is_kept_is_reported_as_it_was",),
    ),
    Mutation(
        "report: the curve of the table prior is of the uniform one",
        "report/internal.py",
        '{"adversary": "I", "prior": "table", "at_most": False}',
        '{"adversary": "I", "prior": "uniform", "at_most": False}',
        tests=(f"{INTERNAL}::test_curves_are_those_of_a_comparison_with_each_adversary",),
    ),
    Mutation(
        "report: the frontier has nodes that another one beats",
        "report/internal.py",
        "if most is None or less < most:",
        "if True:",
        tests=(f"{INTERNAL}::test_the_frontier_is_what_no_node_beats_and_room_is_that_of_the_ledger",),
    ),
    Mutation(
        "report: the map counts blocks for rows",
        "report/read.py",
        "sa.func.sum(blocks.c.n)",
        "sa.func.count(blocks.c.n)",
        tests=(f"{READ}::test_figures_of_a_map",),
    ),
    Mutation(
        "report: a file that the release lives on is replaced",
        "cli/evidence.py",
        "        keep_own_files(option, path, release)\n",
        "",
        tests=("tests/cli/test_report.py::test_what_cannot_be_written_is_said_before_anything_is_read",),
    ),
)
