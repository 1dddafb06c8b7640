"""docker-compose.yml, the page's commands for it, pyproject.toml, the Makefile and the command line say the same."""

from __future__ import annotations

import re
import shlex
import string
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
import typer
import yaml
from engines import Absent
from spark_cluster import CONNECT, free_port, server, spark_home

from qblock.demo import write
from qblock.demo.write import SCHEMA

ROOT = Path(__file__).resolve().parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))
WAREHOUSE, JOB, SPARK = (COMPOSE["services"][name] for name in ("warehouse", "job", "spark"))


@pytest.fixture(scope="module")
def section() -> str:
    return (ROOT / "docs" / "docker-compose.md").read_text("utf-8")


@pytest.fixture(scope="module")
def commands(section: str) -> list[list[str]]:
    lines = [line.strip() for line in section.splitlines()]
    return [shlex.split(line)[2:] for line in lines if line.startswith("docker compose ")]


def test_the_page_runs_asks_and_removes(commands: list[list[str]]) -> None:
    assert [command[0] for command in commands[:2]] == ["run", "exec"]
    profile = ["--profile", *SPARK["profiles"]]
    assert commands[2:] == [[*profile, "up", "spark"], [*profile, "down", "--volumes"]]


def test_the_page_names_services_that_exist(commands: list[list[str]]) -> None:
    run, ask, start, _ = commands
    assert run == ["run", "--rm", "job"]
    assert ask[1] == "warehouse"
    assert {run[-1], ask[1], start[-1]} == set(COMPOSE["services"])
    assert [name for name, service in COMPOSE["services"].items() if "profiles" in service] == ["spark"]
    assert "docker " + shlex.join(["compose", *start]) in (ROOT / "docs" / "spark.md").read_text("utf-8")


def test_the_page_asks_the_view_that_the_demo_publishes(commands: list[list[str]], tmp_path: Path) -> None:
    publish = yaml.safe_load(write.spec_text(write.IN_POSTGRESQL))["publish"]
    environment = WAREHOUSE["environment"]
    assert commands[1][2:6] == ["psql", "-U", environment["POSTGRES_USER"], environment["POSTGRES_DB"]]
    assert f"FROM {publish['schema']}.{publish['view']} " in commands[1][-1]
    assert publish["schema"] != SCHEMA


def test_the_page_names_port_version_and_login(section: str) -> None:
    (port,) = WAREHOUSE["ports"]
    address, outside, inside = port.split(":")
    assert (address, inside) == ("127.0.0.1", "5432")
    assert f"port {outside} " in section
    assert f"PostgreSQL {WAREHOUSE['image'].removeprefix('postgres:')} " in section
    assert f"`{WAREHOUSE['environment']['POSTGRES_PASSWORD']}`" in section


def test_the_job_logs_in_where_the_warehouse_listens() -> None:
    url, environment = sa.make_url(JOB["environment"]["WAREHOUSE_URL"]), WAREHOUSE["environment"]
    assert url.host in COMPOSE["services"]
    assert url.port == int(WAREHOUSE["ports"][0].split(":")[2])
    assert (url.username, url.password, url.database) == (
        environment["POSTGRES_USER"],
        environment["POSTGRES_PASSWORD"],
        environment["POSTGRES_DB"],
    )
    assert yaml.safe_load(write.spec_text(write.IN_POSTGRESQL))["source"]["url"] == "${WAREHOUSE_URL}"


def test_the_job_waits_until_the_warehouse_answers() -> None:
    assert JOB["depends_on"] == {"warehouse": {"condition": "service_healthy"}}
    program, *options = WAREHOUSE["healthcheck"]["test"][1:]
    assert program == "pg_isready"
    environment = WAREHOUSE["environment"]
    assert {f"--username={environment['POSTGRES_USER']}", f"--dbname={environment['POSTGRES_DB']}"} <= set(options)


def test_the_job_runs_the_oldest_python_that_is_allowed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    oldest = re.match(r">=(3\.\d+),", project["requires-python"])
    assert oldest
    assert JOB["image"] == f"python:{oldest[1]}-slim"


def test_the_job_installs_the_checkout_and_runs_a_command_that_exists() -> None:
    mounts = dict(volume.split(":")[:2] for volume in JOB["volumes"])
    shell, flag, text = JOB["command"]
    assert (shell, flag) == ("sh", "-c")
    # Compose turns $$ into $, and string.Template does the same.
    install, run = string.Template(text).substitute().split(" && ")
    assert shlex.split(install)[-1] == mounts["."]
    words = shlex.split(run)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert words[:3] == ["exec", *project["scripts"], "demo"]
    assert words[3] == mounts["demo"] == JOB["working_dir"]
    assert words[4:] == ["--url", "$WAREHOUSE_URL"]
    assert "demo" in COMPOSE["volumes"]


def test_the_command_takes_these_options() -> None:
    app = pytest.importorskip("qblock.cli.app", exc_type=ImportError)
    demo = typer.main.get_command(app.application()).commands["demo"]  # type: ignore[attr-defined]
    options = {option for parameter in demo.params for option in parameter.opts}
    assert {"directory", "--url"} <= options


def test_the_spark_server_is_the_one_that_the_tests_start(section: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    name, version = SPARK["image"].split(":")
    assert name == "apache/spark"
    assert project["optional-dependencies"]["spark"] == [f"pyspark-client=={version}"]
    assert re.findall(r"pyspark==(\S+)", (ROOT / "Makefile").read_text("utf-8")) == [version]
    assert f"Spark {version} " in section
    assert f"--class={CONNECT}" in SPARK["command"]
    assert "--conf=spark.sql.catalogImplementation=hive" in SPARK["command"]


def test_the_spark_server_listens_where_the_page_says(section: str) -> None:
    (port,) = SPARK["ports"]
    address, outside, inside = port.split(":")
    assert address == "127.0.0.1"
    assert f"port {outside} of this machine (`sc://127.0.0.1:{outside}`)" in section
    assert f"--conf=spark.connect.grpc.binding.port={inside}" in SPARK["command"]
    assert SPARK["healthcheck"]["test"][-1].endswith(f"/127.0.0.1/{inside}")


def test_what_the_spark_server_writes_is_in_its_volume(section: str) -> None:
    ((volume, folder),) = (mount.split(":") for mount in SPARK["volumes"])
    assert volume in COMPOSE["volumes"]
    assert folder == SPARK["working_dir"]
    assert f"--conf=spark.sql.warehouse.dir={folder}/warehouse" in SPARK["command"]
    assert f"`{folder}`" in section


@pytest.mark.spark
def test_the_command_of_the_spark_server_starts_one_with_a_catalog(tmp_path: Path) -> None:
    home = spark_home()
    if home is None:
        raise Absent("no Spark: the server's environment (.venv-spark) is absent; run make test-spark")
    from pyspark.sql.connect.session import SparkSession

    inside, port = SPARK["ports"][0].split(":")[2], free_port()
    places = {SPARK["working_dir"]: str(tmp_path), "/opt/spark": str(home), f"port={inside}": f"port={port}"}
    command = list(SPARK["command"])
    for there, here in places.items():
        command = [word.replace(there, here) for word in command]
    # In a container it listens on every address, so that its port can be published; not here.
    command.insert(1, "--conf=spark.connect.grpc.binding.address=127.0.0.1")
    asked = [word.replace(f"/{inside}", f"/{port}") for word in SPARK["healthcheck"]["test"][1:]]
    assert subprocess.run(asked, capture_output=True).returncode != 0
    with server(home, tmp_path, port, command):
        assert subprocess.run(asked, capture_output=True).returncode == 0
        client = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").create()
        client.sql("CREATE TABLE kept USING parquet AS SELECT 1 AS x")
        client.stop()
    with server(home, tmp_path, port, command):
        client = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").create()
        assert client.table("kept").toArrow().column("x").to_pylist() == [1]
        client.stop()
    assert {path.name for path in tmp_path.iterdir()} >= {"metastore_db", "warehouse"}
