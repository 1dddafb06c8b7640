"""A release, from its spec: everything that a command does with one, for programs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qblock import results
from qblock.engines.given import in_its_session
from qblock.errors import InputError, QblockError, hide_all_tracebacks, wrap_methods
from qblock.files import OwnFile
from qblock.spec import Spec, load_spec, spec_of
from qblock.spec.urls import OF_PROCESS

if TYPE_CHECKING:
    import pyarrow as pa

    from qblock.hierarchy import Layout
    from qblock.release.erase import Agree
    from qblock.release.log import Entries
    from qblock.report import Report
    from qblock.results.estimate import What
    from qblock.search.beliefs import BayesAdversary
    from qblock.search.compare import Comparison
    from qblock.search.progress import Progress
    from qblock.tables.audited import Threshold

Say = Callable[[str], None]


def _explained(error: BaseException) -> QblockError | None:
    """Our error for a driver's, whose engines are imported for one alone."""
    from qblock.engines.driver_errors import explained

    return explained(error)


@partial(hide_all_tracebacks, explain=_explained)
@partial(wrap_methods, wrap=in_its_session)
class Release:
    """One release. Nothing is opened until a method is called, and nothing stays open after it.

    A method that refuses raises Refused, one that is asked for what cannot be raises InputError, and Busy says that
    another run is in progress; whatever was published before stays published. progress: is told how far the search
    is (SearchProgress); log: is told each step in a sentence; entries: the same with run, step and time; wait: seconds
    to wait for another run of the release.
    """

    def __init__(
        self, spec: str | Path | Mapping[str, Any] | Spec, *, name_values: bool = False, spark: Any = None
    ) -> None:
        """spec: the path of a spec, or its keys and values as a mapping. name_values: whether errors may name values of
        the source and keep what the database said: where nobody but who may see the data is shown them. spark: the
        session of Spark, classic or Connect, that the URL `spark:` means; None: the active one. Raises InputError for
        a spec with errors.
        """
        self.name_values, self.session = name_values, spark
        if isinstance(spec, Spec):
            self.spec = spec
        else:
            self.spec = spec_of(spec) if isinstance(spec, Mapping) else load_spec(spec)
        named = (self.spec.source.url, self.spec.publish.url)
        if spark is not None and not any(url is not None and url.url == OF_PROCESS for url in named):
            raise InputError('a session of Spark is given, and the spec names none; write source: {url: "spark:", ...}')

    def __repr__(self) -> str:
        return f"Release({self.name!r})"

    @property
    def name(self) -> str:
        """The name of the release."""
        return self.spec.release

    def search(
        self,
        *,
        strategy: str | None = None,
        within: str | None = None,
        all_nodes: bool = False,
        churn: float | None = None,
        progress: Progress | None = None,
    ) -> results.search.Searched:
        """Search the lattice for the node to publish; publishes nothing. within: the time after which the best that was
        come to is taken (`60s`), instead of what the spec says. all_nodes: answer for every node; churn: the
        share of the people who come, and leave, in each run, for `forecast`; by default as in the runs so far. Raises
        InputError for a churn of versions that do not lag.
        """
        from qblock.checks import check_chosen
        from qblock.search.progress import with_time
        from qblock.search.result import refusal, suppressed_attributes
        from qblock.search.run import open_task, run_search
        from qblock.source.in_words import levels_in_words
        from qblock.versions.later import later_versions

        expected_churn = None
        if churn is not None:
            from qblock.release.forecast import churn_of

            expected_churn = churn_of(self.spec, churn)
        spec = self.spec if within is None else with_time(self.spec, within)
        with open_task(spec, name_values=self.name_values) as task:
            best_only = task.spec.search.answer == "best" and not all_nodes and expected_churn is None
            result = run_search(
                task,
                strategy=strategy,
                progress=progress,
                all_nodes=all_nodes,
                best_only=best_only,
                stated=self._named_map(),
            )
            task.warnings += later_versions(self.spec)
            today = datetime.now(UTC).date()
            checks = [] if result.chosen is None else check_chosen(task, result, today)
            refused = None if result.chosen is not None else str(refusal(result))
            shows_nothing = [attribute.to_json() for attribute in suppressed_attributes(result)]
            expected = {}
            if self.spec.lags:
                from qblock.release.frontier import expected_of_search

                expected = expected_of_search(result, expected_churn, progress)
            answer = result.to_json() | {"suppressed_attributes": shows_nothing} | expected
            in_words = levels_in_words(self.spec, task.source.hierarchies)
            answer |= {"checks": checks, "refused": refused, "in_words": in_words}
            return results.search.Searched.model_validate(answer)

    def explorer(self, *, definitions: str | Path | None = None, progress: Progress | None = None) -> str:
        """A page in HTML on which somebody chooses what to publish: nodes and some recoding maps, with what a choice
        goes by. Of a lattice of more than 2,500 nodes it has those around the best. definitions: as of `compare`.
        INTERNAL: it tells of the source."""
        from qblock.report.explorer import explorer_page
        from qblock.search.compare import read_definitions
        from qblock.search.explorer import explore
        from qblock.search.run import open_task

        further = () if definitions is None else read_definitions(definitions, self.spec)
        with open_task(self.spec, name_values=self.name_values) as task:
            return explorer_page(explore(task, progress, definitions=further))

    def in_words(self, levels: Mapping[str, int]) -> dict[str, str]:
        """What readers see of each quasi-identifier at these levels, as far as the spec and its files tell."""
        from qblock.source.in_words import node_in_words

        return dict(node_in_words(self.spec, levels))

    def explain_sql(self, node: str | None = None) -> list[tuple[str, str]]:
        """Titles and statements of a node, for each engine. node: `a=2,b=1`, `2,1`, `bottom` or `top`."""
        from qblock.search.nodes import explain_sql
        from qblock.search.run import open_task

        with open_task(self.spec, name_values=self.name_values) as task:
            return explain_sql(task, node)

    def audit(
        self,
        node: str | None = None,
        *,
        adversary: str | None = None,
        prior: str | Path | None = None,
        rule_out: Mapping[str, Sequence[Any]] | None = None,
        near: Mapping[str, Any] | None = None,
        beliefs: BayesAdversary | None = None,
        **thresholds: Threshold,
    ) -> results.audit.Audited:
        """The tightest parameter of every model, attacks and utility at a node; by default the pinned one or the
        recoding map, else the table as it is.

        adversary: `bayes` for the beliefs of somebody who knows a population (l-diversity, section 3), too; prior:
        which one: `table` for the source itself, a table of its warehouse, or a CSV file of weights. thresholds: rho1,
        rho2 (0.1, 0.5), delta, epsilon (0.1, 0.1), factor (2); beliefs: all of these as one. Raises InconsistentPrior
        (an InputError), with counts, where the table has what the population has not. rule_out, near: what an attacker
        knows: {"disease": ["flu"]}, values that they rule out; {"income": 50}, how near numbers are alike.
        """
        from qblock.search.audit import audit_spec
        from qblock.search.beliefs import Attacker, BayesAdversary

        beliefs = beliefs or BayesAdversary.of(adversary, prior, thresholds)
        attacker = Attacker.of(rule_out, near)
        stated = None if node is not None else self._named_map()
        audited = audit_spec(self.spec, node, stated=stated, adversary=beliefs, attacker=attacker)
        return results.audit.Audited.model_validate(audited)

    def frequency_set(self, node: str) -> pa.Table:
        """How often each combination of labels and sensitive values occurs at a node: a row for each, with `count`.

        PRIVATE: of a fine node, these are people. node: as of `audit`. `qblock.api.write_parquet` writes it to a file
        that nobody else may read.
        """
        from qblock.search.compare_results import frequency_set
        from qblock.search.nodes import parse_node
        from qblock.search.run import open_task

        with open_task(self.spec, name_values=False) as task:
            return frequency_set(task, parse_node(task, node))

    def _named_map(self) -> Mapping[str, Any] | None:
        """The recoding map that `search.node` names."""
        if self.spec.map_version is None:
            return None
        from qblock.release.maps import map_named_by

        return map_named_by(self.spec)

    def compare(
        self,
        *,
        sensitive: Sequence[str] = (),
        definitions: str | Path | None = None,
        workload: str | Path | None = None,
        progress: Progress | None = None,
    ) -> results.audit.Compared:
        """Many privacy definitions at every node. definitions: a file with more of them; workload: a file of count
        queries, in the form of `search.workload`, whose error is a metric of each node then."""
        from qblock.search.compare_results import compared

        comparison = self.comparison(sensitive=sensitive, definitions=definitions, workload=workload, progress=progress)
        return compared(comparison)

    def comparison(
        self,
        *,
        sensitive: Sequence[str] = (),
        definitions: str | Path | None = None,
        workload: str | Path | None = None,
        progress: Progress | None = None,
    ) -> Comparison:
        """The same with exact values, for whoever tabulates them."""
        from qblock.search.compare import compare
        from qblock.search.run import open_task

        spec = self._with_workload(workload)
        with open_task(spec, name_values=False) as task:
            return compare(
                task, sensitives=sensitive, file=definitions, progress=progress, last=True, workload=workload
            )

    def _with_workload(self, file: str | Path | None) -> Spec:
        """The spec with the workload of a file, if there is one."""
        if file is None:
            return self.spec
        from qblock.search.workload import with_workload

        return with_workload(self.spec, file)

    def compare_recodings(
        self, *, workload: str | Path | None = None, progress: Progress | None = None
    ) -> results.audit.ComparedRecodings:
        """What the privacy models and the suppression limit of the spec leave of the data at the node of full-domain
        recoding and in a recoding map, whichever of them the spec asks for. workload: as of `compare`. Raises
        InputError for what only one of them has: a pinned node, a metric that cannot choose between splits,
        (n,t)-closeness but of variant own_or_top.
        """
        from qblock.search.recodings import check_both, compare_recodings
        from qblock.search.run import open_task

        check_both(self.spec)  # before the source is scanned
        with open_task(self._with_workload(workload), name_values=self.name_values) as task:
            recodings = compare_recodings(task, progress=progress, workload=workload)
            return results.audit.ComparedRecodings.model_validate(recodings.to_json() | {"refused": recodings.refused})

    def plan(self, *, churn: float | None = None, progress: Progress | None = None) -> results.release.Planned:
        """The steps of `publish`. churn: as of `search`; before a first version the lattice is searched for it, and
        with newcomers in cohorts a year is simulated with each choice of boxes and delay, for `frontier`."""
        from qblock.release.preview import preview

        return preview(self.spec, churn, progress)

    def plan_rollback(self, version: int, *, wait: float = 0) -> results.release.Planned:
        """The steps of `rollback`."""
        from qblock.release.rollback import plan_rollback

        return plan_rollback(self.spec, version, wait=wait).answer()

    def plan_erase(
        self,
        people: Sequence[str] = (),
        *,
        missing: bool = False,
        confirm: int | None = None,
        now: bool = False,
        wait: float = 0,
    ) -> results.release.Planned:
        """The steps of `erase`. With `now` also how many share the joint cells of those who would leave (`sharing`),
        and with `missing` how many are missing; else nobody is looked up."""
        from qblock.release.erase import plan_erase

        return plan_erase(self.spec, people, missing=missing, confirm=confirm, now=now, wait=wait)

    def grants(self, *, job: str | None = None, officer: str | None = None) -> results.release.Grants:
        """The SQL that the job's login, the readers and an officer need; on DuckDB files and folders. Reads the catalog
        alone.

        job: the login, where it is not the one of the source's URL; officer: a role that is to read the ledger.
        """
        from qblock.release.grants import grants

        return results.release.Grants.model_validate(grants(self.spec, job=job, officer=officer))

    def publish(
        self,
        *,
        force: bool = False,
        wait: float = 0,
        progress: Progress | None = None,
        log: Say | None = None,
        entries: Entries | None = None,
    ) -> results.release.Published:
        """The job: search, copy, check the copy, publish it behind the view; or find that nothing has changed.

        force: publish even then, or after the release was retired.
        """
        from qblock.release.apply import release
        from qblock.release.log import Reporter

        return release(self.spec, force=force, wait=wait, progress=progress, reporter=Reporter(log, entries))

    def dry_run(self, *, wait: float = 0) -> results.release.DryRun:
        """Decide what `publish` would come to, and publish nothing. What it came to is in the ledger alone (`history`),
        since it depends on people whom no version shows yet."""
        from qblock.release.dry_run import dry_run

        return dry_run(self.spec, wait=wait)

    def verify(self, *, head: str | None = None) -> results.release.Verified:
        """Count again what is published, and compare it with the ledger. head: the ledger head that was kept last.

        What does not agree is in `problems`; `raise_problems` raises it.
        """
        from qblock.release.verify import verify

        return verify(self.spec, expected_head=head)

    def report(
        self,
        *,
        internal: bool = False,
        candidate: bool = False,
        version: int | None = None,
        prior: str | None = None,
        framework: str | None = None,
        progress: Progress | None = None,
    ) -> Report:
        """What readers see, what is promised of it, and what attacks find: read from the view and its helper views
        alone, so that a reader's login suffices. Raises InputError where a helper view is missing.

        internal: with margins, lattice, versions, rights and spec, for whoever runs the job; candidate: with these
        alone, of what the next run takes; version: with `internal`, of an older version that is kept; prior: with the
        beliefs of whoever knows this population, as of `audit`; framework: in the order of a document: `ema`, `hipaa`,
        `wp29`, `sp800-188`, `iso27559` or `tehdas`. Raises InputError for version or prior in a report for readers, for
        a version that is not kept and for a framework that is none.
        """
        from qblock.report import read_report

        if prior is not None and not (internal or candidate):
            raise InputError("a prior is about an internal report: its figures are of the source; add internal")
        return read_report(
            self.spec,
            internal=internal,
            candidate=candidate,
            version=version,
            prior=prior,
            framework=framework,
            progress=progress,
        )

    def estimate(
        self,
        what: What,
        column: str | None = None,
        *,
        where: Mapping[str, Any] | None = None,
        by: str | None = None,
        weights: bool = False,
    ) -> results.estimate.Estimate:
        """A `count`, or the `mean` or `sum` of a column, of the published rows that meet some conditions: what is
        certain, and what is expected.

        Computed from the view and its helper views alone, so that it tells nothing that readers do not see. where: of
        columns, a value, a list of values, or a half-open range: {"age": {"from": 20, "below": 40}, "sex": ["f"]}; by:
        a column whose values, or labels, are told apart; weights: count rows by their weight. Raises InputError for a
        column that readers do not see, Refused where nothing is published.
        """
        from qblock.estimate import estimate

        return estimate(self.spec, what, column, where or {}, by, weights=weights)

    def history(self) -> results.release.History:
        """The ledger of the release."""
        from qblock.ledger.history import history

        return results.release.History.model_validate(history(self.spec))

    def rollback(
        self, version: int, *, wait: float = 0, log: Say | None = None, entries: Entries | None = None
    ) -> results.release.Published:
        """Publish an older version again, after the checks of a release."""
        from qblock.release.log import Reporter
        from qblock.release.rollback import rollback

        return rollback(self.spec, version, wait=wait, reporter=Reporter(log, entries))

    def erase(
        self,
        people: Sequence[str] = (),
        *,
        missing: bool = False,
        confirm: int | None = None,
        now: bool = False,
        agree: Agree | None = None,
        wait: float = 0,
        progress: Progress | None = None,
        log: Say | None = None,
        entries: Entries | None = None,
    ) -> results.release.Erased:
        """People withdraw, named by the text of the entity column, or (missing) those whom the source has no more. now:
        they leave at once, with everybody who shares a joint cell with them; else in a batch, with a later release.

        confirm: how many are missing, without which Refused is raised where they are more than a fifth of the people.
        agree: told how many leave at once before anything is changed; Refused is raised where it says no; None: nobody
        is asked.
        """
        from qblock.release.erase import erase
        from qblock.release.log import Reporter

        return erase(
            self.spec,
            people,
            missing=missing,
            confirm=confirm,
            now=now,
            agree=agree,
            wait=wait,
            progress=progress,
            reporter=Reporter(log, entries),
        )

    def retire(self, *, wait: float = 0, log: Say | None = None) -> results.release.Ended:
        """Take the view away from its readers; versions, ledger and crosswalk stay."""
        from qblock.release.log import Reporter
        from qblock.release.retire import retire

        return retire(self.spec, wait=wait, reporter=Reporter(log))

    def move_from(self, earlier: str, *, wait: float = 0) -> results.release.Ended:
        """Make the release `earlier` this one: its name, source and view, with all versions and evidence."""
        from qblock.release.move import move

        return move(self.spec, earlier, wait=wait)

    def retype(self, *, wait: float = 0) -> results.release.Retyped:
        """Convert what is kept to the types that the source's columns have now."""
        from qblock.release.retype import retype

        return retype(self.spec, wait=wait)

    def build_hierarchies(
        self, directory: str | Path, *, force: bool = False, layout: Layout = "header"
    ) -> results.search.HierarchyFiles:
        """Write every hierarchy as a CSV file, with the values that the source holds now. layout: `semicolons` without
        a header, as other tools read it."""
        from qblock.publish.hierarchies import write_hierarchies
        from qblock.search.run import open_task

        with open_task(self.spec, name_values=self.name_values) as task:
            files = write_hierarchies(task, Path(directory), force=force, layout=layout)
        return results.search.HierarchyFiles(files=tuple(files))

    def check(self) -> results.check.SpecChecked:
        """What the spec takes for granted and the data do not bear out: of the pinned node, else of any."""
        from qblock.checks import check_spec

        return check_spec(self.spec, datetime.now(UTC).date(), name_values=self.name_values)

    def check_hierarchies(self) -> results.search.Checked:
        """Check that every hierarchy is nested and covers every value. Raises InputError with what is missing."""
        from qblock.publish.hierarchies import check_hierarchies
        from qblock.search.run import open_task

        with open_task(self.spec, name_values=self.name_values) as task:
            return check_hierarchies(task)

    def load_hierarchies(self) -> results.search.HierarchyTables:
        """Write the hierarchies as dimension tables."""
        from qblock.publish.hierarchies import dimension_tables, load_hierarchies
        from qblock.search.run import open_task

        with open_task(self.spec, name_values=self.name_values) as task:
            tables = dimension_tables(task)
        return load_hierarchies(self.spec, tables)

    def own_files(self) -> Iterator[OwnFile]:
        """The files that the release lives on, which nothing else may be written to: spec, source, release file,
        hierarchies, private folder."""
        from qblock.release.own_files import own_files

        return own_files(self.spec)
