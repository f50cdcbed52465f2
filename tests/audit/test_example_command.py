"""``skvalue example``, and the commands that --help shows."""

import re

import pandas as pd
import pytest

from tests.audit.command_line import command


def shown_commands(capsys):
    """The commands that `skvalue --help` shows to begin with."""
    with pytest.raises(SystemExit):
        command("--help")
    shown = capsys.readouterr().out
    return re.findall(r"^  skvalue (.*)$", shown, re.MULTILINE)


def test_the_commands_that_help_shows_run_as_they_stand(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    lines = shown_commands(capsys)

    assert len(lines) == 3
    for line in lines:
        assert command(line) == 0

    before = pd.read_csv("train.csv")["label"]
    after = pd.read_csv("train.fixed.csv")["label"]
    assert set(after) == {"Barolo", "Grignolino", "Barbera"}
    changed = before[before != after]
    assert [*changed] == ["barolo", "BAROLO", "grignolino", "BARBERA"]


def test_the_next_step_that_is_printed_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert command("example wines.csv") == 0
    printed = capsys.readouterr().out

    [line] = re.findall(r"^Next: skvalue (.*)$", printed, re.MULTILINE)
    assert command(line) == 0
    assert (tmp_path / "wines.html").exists()


@pytest.mark.parametrize(
    ("name", "message"),
    [("train.csv", "file must not exist"), ("train.txt", "file must end in .csv")],
)
def test_a_file_is_refused(name, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.csv").write_text("kept", encoding="utf-8")

    assert command(["example", name]) == 2
    assert message in capsys.readouterr().err
    assert (tmp_path / "train.csv").read_text(encoding="utf-8") == "kept"
