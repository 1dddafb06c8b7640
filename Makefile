# Everything runs in .venv, which is made here: a bare machine needs make and a Python 3.11 to 3.13 with venv and pip.

PYTHON ?= python3
DEMO ?= demo
# What `make test-more` needs beside: PostgreSQL 15, the oldest that is supported (Debian 12: postgresql-15), and a
# browser (Debian: chromium) with what drives it, and a kernel of notebooks (.venv/bin/pip install --editable
# ".[browser,notebook]"). DuckDB 1.5, the oldest that is supported, gets an environment of its own here.
REQUIRE ?= postgresql15,chromium,duckdb15,notebook

# Where `make test-spark` looks for tests on a Spark cluster; tests/on_spark.py says which of the suite run there.
SPARK_TESTS ?= tests

# What `make test-duckdb15` runs: what knows the library itself, a release with all that it leaves behind, the demo.
DUCKDB15_TESTS ?= tests/warehouse/test_duckdb_dialect.py tests/release/test_openings.py \
	tests/publish/test_publish_file.py tests/release/test_verify.py tests/cli/test_database_errors.py \
	tests/project/test_demo_write.py

BIN := .venv/bin

# The tests start hundreds of programs, each of which would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help test test-more test-duckdb15 test-spark test-all docs lint types demo clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

test: .venv/.installed-dev ## lint, types and the quick part of the test suite, which a bare machine can run
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	QBLOCK_TEST_PART=quick $(BIN)/python -m pytest -n 2 --dist worksteal

test-more: .venv/.installed-dev .venv-duckdb15/.installed ## the rest of the suite, with what a bare machine skips, which fails here where what it needs is absent
	QBLOCK_TEST_PART=more QBLOCK_TEST_REQUIRE=$(REQUIRE) $(BIN)/python -m pytest -n 2 --dist worksteal

test-duckdb15: .venv/.installed-dev .venv-duckdb15/.installed ## a few tests with DuckDB 1.5, the oldest that is supported
	QBLOCK_TEST_PART=quick .venv-duckdb15/bin/python -m pytest -n 2 --dist worksteal -k "not postgresql" $(DUCKDB15_TESTS)

test-spark: .venv/.installed-dev .venv-spark/.installed ## what of the suite runs on a Spark cluster (needs Java 17)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[spark]'
	QBLOCK_TEST_REQUIRE=spark $(BIN)/python -m pytest -n 2 --dist worksteal -m spark $(SPARK_TESTS)

test-all: .venv/.installed-dev .venv-duckdb15/.installed ## every test on every engine
	QBLOCK_TEST_ENGINES=all QBLOCK_TEST_REQUIRE=$(REQUIRE) $(BIN)/python -m pytest -n 2 --dist worksteal

docs: .venv/.installed-docs ## the documents as a site, in build/site, which opens and is searched without a server; a link that leads nowhere is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --config-file site/mkdocs.yml

lint: .venv/.installed-dev ## only the linters
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: .venv/.installed-dev ## only mypy
	$(BIN)/mypy

demo: .venv/.installed ## a DuckDB warehouse with people in demo/, anonymized and published
	$(BIN)/qblock demo $(DEMO)
	@echo "   . .venv/bin/activate   # if qblock is not found: it is in the environment that make has made"

clean: ## removes the environment, the demo and what tools have cached
	rm -rf .venv .venv-duckdb15 .venv-spark build dist demo .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find engine migrations tests -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamps are written last, so that what was interrupted half-way is done again. Both installs are editable:
# a plain one would go stale with the next edit, since only pyproject.toml is watched. pycanon, which tests compare
# with, pins an older typer for a command line of its own that is not used here: it comes without what it pins.
.venv/.made:
	$(PYTHON) -m venv --clear .venv
	@touch $@

.venv/.installed: .venv/.made pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

.venv/.installed-docs: .venv/.made pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	@touch $@

.venv/.installed-dev: .venv/.made pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps pycanon==1.3.6
	@touch $@

# The library alone: everything else is that of .venv, whose own DuckDB comes after it.
.venv-duckdb15/.installed: .venv/.installed-dev
	$(PYTHON) -m venv --clear .venv-duckdb15
	.venv-duckdb15/bin/python -m pip install --quiet --disable-pip-version-check --no-deps 'duckdb>=1.5,<1.6'
	$(BIN)/python -c "import sysconfig; print('import site; site.addsitedir(%r)' % sysconfig.get_path('purelib'))" \
		> $$(.venv-duckdb15/bin/python -c "import sysconfig; print(sysconfig.get_path('purelib'))")/others.pth
	@touch $@

# The cluster's package has the import name of the client's, so it has an environment of its own; one version of both.
.venv-spark/.installed: Makefile
	$(PYTHON) -m venv --clear .venv-spark
	.venv-spark/bin/python -m pip install --quiet --disable-pip-version-check --no-deps pyspark==4.0.1
	@touch $@
