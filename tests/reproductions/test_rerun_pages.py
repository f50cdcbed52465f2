"""The script that redoes the figures of the pages of speeds and of comparisons."""

import re
import sys
from pathlib import Path

import pytest

from .scripts import of

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["performance.rst", "other_libraries.rst"]


@pytest.mark.parametrize("page", PAGES)
@of("rerun_pages")
def test_every_command_of_a_page_is_run(script, page):
    text = (ROOT / "doc" / page).read_text(encoding="utf-8")
    text = re.sub(r"\s+", " ", text)
    named = re.findall(r"(?:examples/reproductions/|`)(\w+\.py)", text)
    named += re.findall(r"pytest (tests/benchmarks\S*)", text)
    run = " ".join(" ".join(command) for command in script.COMMANDS.values())
    # Files of benchmarks are run with their folder.
    wanted = {name for name in named if not name.startswith("tests/benchmarks/")}
    wanted.discard("rerun_pages.py")
    assert wanted
    assert not [name for name in wanted if name not in run]


@of("rerun_pages")
def test_outputs_are_kept_below_date_and_versions(script, monkeypatch, run, tmp_path):
    commands = {
        "good": [sys.executable, "-c", "print('ratio 2.0')"],
        "bad": [sys.executable, "-c", "raise SystemExit(3)"],
    }
    monkeypatch.setattr(script, "COMMANDS", commands)
    printed = run(f"{tmp_path}")
    assert re.search(r"^good: \d+ s$", printed, re.MULTILINE)
    assert re.search(r"^bad: failed with code 3 after \d+ s$", printed, re.MULTILINE)
    kept = (tmp_path / "good.txt").read_text()
    assert re.match(r"\d{4}-\d\d-\d\d, .* cores, skvalue \S+, numpy ", kept)
    assert kept.endswith("ratio 2.0\n")

    assert "good: is there already" in run(f"{tmp_path}")


@of("rerun_pages")
def test_a_library_is_passed_where_it_is_compared(script, run):
    printed = run("folder --list --data . --with pydvl=python --with cleanlab=python")
    lines = dict(line.split(": ", 1) for line in printed.splitlines())
    assert list(lines) == list(script.COMMANDS)
    assert lines["other_libraries"].endswith(
        "--with pydvl=python --with cleanlab=python"
    )
    assert lines["other_libraries_influence"].endswith("--with pydvl=python")
    assert "--cleanlab python" in lines["neighbor_costs"]
    assert "pydvl" not in lines["benchmarks"]


@of("rerun_pages")
def test_commands_without_their_data_are_left_out(run, tmp_path):
    printed = run(f"{tmp_path} --only neighbor_costs")
    assert printed == "neighbor_costs: left out, it needs --data\n"
