"""What runs elsewhere: commands of the workflows, wheels, the recipe of conda."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

import skvalue

ROOT = Path(__file__).resolve().parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

# What a command needs that a test has not: the service that runs the workflows.
ELSEWHERE = {
    "uv publish": "a token of the service",
    "cibuildwheel": "containers, and hours",
    "nightly": "an index on the network",
    "tests/release.py": "hours; it is a command of its own",
}


def steps():
    """(workflow, name of the step, command, environment) of each `run:`."""
    for path in WORKFLOWS:
        jobs = yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"]
        for job in jobs.values():
            env = {**job.get("env", {}), "PATHS": "tests/test_workflows.py"}
            env["GITHUB_REF_NAME"] = f"v{skvalue.__version__}"
            for step in job["steps"]:
                if "run" in step:
                    yield path.name, step.get("name", ""), step["run"], env


COMMANDS = {command: (name, env) for _, name, command, env in steps()}


def test_the_workflows_have_commands():
    assert len(WORKFLOWS) >= 4
    assert any("pytest" in command for command in COMMANDS)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_job_has_a_limit_of_time_and_the_least_permissions(path):
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))

    assert workflow["permissions"] == {}
    for job in workflow["jobs"].values():
        assert job["timeout-minutes"] <= 350
        assert "permissions" in job


def test_wheels_are_built_for_each_python_that_is_tested():
    tests = next(path for path in WORKFLOWS if path.name == "tests.yml")
    matrix = yaml.safe_load(tests.read_text(encoding="utf-8"))["jobs"]["suite"]
    pythons = matrix["strategy"]["matrix"]["python"]
    built = SETTINGS["tool"]["cibuildwheel"]["build"]

    assert built.split() == [f"cp{python.replace('.', '')}-*" for python in pythons]
    assert f">={pythons[0]}" == SETTINGS["project"]["requires-python"]


def tried_pythons():
    """Minor versions of Python in the table of environments that were tried."""
    page = (ROOT / "doc" / "installation.rst").read_text(encoding="utf-8")
    [row] = re.findall(r"^python .*$", page, re.MULTILINE)
    return set(re.findall(r"\b(3\.\d+)\.\d+", row))


def test_classifiers_name_the_pythons_that_were_tried():
    named = {
        line.rpartition(" ")[2]
        for line in SETTINGS["project"]["classifiers"]
        if line.startswith("Programming Language :: Python :: 3.")
    }
    assert named == tried_pythons()


def test_limits_name_the_pythons_that_were_not_tried():
    built = re.findall(r"cp3(\d+)-", SETTINGS["tool"]["cibuildwheel"]["build"])
    limits = (ROOT / "doc" / "known_limits.rst").read_text(encoding="utf-8")
    for python in {f"3.{minor}" for minor in built} - tried_pythons():
        assert re.search(rf"^Python {re.escape(python)} +not run", limits, re.MULTILINE)


def test_wheels_for_macs_with_intel_are_tested_without_torch():
    [override] = SETTINGS["tool"]["cibuildwheel"]["overrides"]
    assert override["select"] == "*-macosx_x86_64"
    extras = SETTINGS["project"]["optional-dependencies"]
    for extra in override["test-extras"]:
        assert not any("torch" in requirement for requirement in extras[extra])
    for word in override["test-command"].split():
        assert not word.startswith("tests/") or (ROOT / word).is_dir()


def test_only_a_tag_publishes_and_without_a_password():
    path = next(path for path in WORKFLOWS if path.name == "wheels.yml")
    text = path.read_text(encoding="utf-8")
    workflow = yaml.safe_load(text)
    publish = workflow["jobs"]["publish"]

    assert "secrets." not in text
    assert publish["permissions"] == {"id-token": "write"}
    assert publish["needs"] == ["wheels", "sdist"]
    # YAML reads the key `on` as the boolean.
    assert workflow[True]["push"] == {"tags": ["v*"]}
    assert publish["if"] == "github.event_name == 'push'"


def test_the_recipe_of_conda_has_the_requirements_of_the_package():
    recipe = yaml.safe_load(
        (ROOT / ".github" / "conda" / "recipe.yaml").read_text(encoding="utf-8")
    )
    run = {line.replace(" ", "") for line in recipe["requirements"]["run"]}
    host = {line.replace(" ", "") for line in recipe["requirements"]["host"]}

    assert run == {
        *SETTINGS["project"]["dependencies"],
        f"python{SETTINGS['project']['requires-python']}",
    }
    assert {*SETTINGS["build-system"]["requires"]} <= host


@pytest.fixture(scope="module")
def clone_and_path(tmp_path_factory):
    """A clone with what is not committed, and the PATH of a fresh environment."""
    folder = tmp_path_factory.mktemp("workflows")
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in listed.stdout.splitlines():
        target = folder / "clone" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).exists():
            shutil.copy2(ROOT / name, target)
    # The linters ask git which files there are.
    for command in (["init", "-q"], ["add", "-A"]):
        subprocess.run(["git", *command], cwd=folder / "clone", check=True)
    subprocess.run([sys.executable, "-m", "venv", folder / "fresh"], check=True)
    return (
        folder / "clone",
        f"{folder / 'fresh' / 'bin'}{os.pathsep}{os.environ['PATH']}",
    )


@pytest.mark.slow
@pytest.mark.xdist_group("workflows")
@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: COMMANDS[c][0])
def test_a_command_of_a_workflow_runs(command, clone_and_path):
    """In the order of the workflows, in one fresh environment. The tests themselves are
    collected and not run: they run by themselves."""
    for words, reason in ELSEWHERE.items():
        if words in command:
            pytest.skip(f"needs {reason}")
    clone, path = clone_and_path
    env = {
        **os.environ,
        **COMMANDS[command][1],
        "PATH": path,
        "PYTHONPATH": "",
        "PYTEST_ADDOPTS": "--collect-only -q -p no:cacheprovider",
    }
    if "sphinx" in command:
        # The gallery is run by tests of its own.
        command = command.replace("-b html", "-D plot_gallery=0 -b html")

    result = subprocess.run(
        command, shell=True, cwd=clone, env=env, capture_output=True, text=True
    )

    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    assert not re.search("no tests ran", result.stdout)
