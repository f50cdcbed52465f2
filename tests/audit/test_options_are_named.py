"""A bad value of an option, or parameter: the message names it, as a field does."""

import pickle
import re

import numpy as np
import pytest

import skvalue
from skvalue.audit import fix_table, read_table
from skvalue.exceptions import ParameterError
from skvalue.selection import ValueFilter
from tests.audit.command_line import command

pytest.importorskip("pandas")
pytest.importorskip("jinja2")

# Command -> a line that is right.
LINES = {
    "audit": "t.csv --target y --output o.html",
    "check": "t.csv",
    "value": "t.csv --target y --output o.csv",
    "clean": "t.csv --target y --output o.csv",
    "fix": "t.csv c.csv --output o.csv",
    "review": "r.json c.csv --output o.html",
    "buyer export": "rows.npy --output n",
    "buyer score": "m rows.npy s.json",
    "seller summarize": "m rows.npy --epsilon 1 --delta 1e-5 --output s.json",
    "party model": "t.csv --target y --ignore g --output m.json",
    "party release": "p.json t.csv --party a --epsilon 1 --delta 1e-5 --output s.json",
    "party score": "p.json a.json --validation v.csv",
    "party reward": "p.json a.json --validation v.csv --output rewards",
    "party gain": "p.json r.json t.csv",
    "party predict": "p.json r.json t.csv --output o.csv",
    "ledger new": "new.db name --epsilon 1 --delta 1e-5",
    "ledger spend": "ledger.db --epsilon 1 --delta 1e-5",
}
# Option -> a value that no command takes.
BAD = {
    "--target": "z", "--validation": "none.csv", "--task": "x", "--ignore": "z",
    "--groups": "z", "--sep": "ab", "--encoding": "z", "--skip-lines": "-1",
    "--decimal": "x", "--dates": "x", "--latest-year": "3", "--max-rows": "0",
    "--missing": "9=z", "--text": "z", "--seed": "-1", "--fail-on": "7",
    "--checks": "x", "--findings": "f.x", "--corrections": "f.x",
    "--fail-on-findings": "x", "--epsilon": "-1", "--delta": "7",
    "--ledger": "none.db", "--output": "r.npy", "--json": "f.x", "--csv": "f.x",
    "--tasks": "f.x", "--fdr": "7", "--method": "x", "--drop": "x",
    "--from": "none.json", "--report": "f.x", "--changes": "f.x", "--relation": "x",
    "--representation": "x", "--party": "a/b", "--positive": "z", "--value": "x",
    "--semivalue": "x", "--budget": "-1", "--unit": "-1", "--columns": "x",
    "--pairs": "f.x", "--scoring": "x", "--empty-utility": "x", "--n-draws": "0",
}  # fmt: skip
# Options that have no value, or take any text.
ANY = {
    "--help", "--header", "--no-header", "--strict", "--equal-rows", "--keep-classes",
    "--no-keep-classes", "--force", "--named", "--label", "--notes", "--dataset-name",
    "--standardize", "--no-standardize",
}  # fmt: skip
TABLE = {
    "--target", "--validation", "--task", "--ignore", "--groups", "--sep", "--encoding",
    "--skip-lines", "--decimal", "--dates", "--latest-year", "--max-rows", "--missing",
    "--text", "--seed",
}  # fmt: skip
PRIVACY = {"--epsilon", "--delta", "--ledger"}
CHECKS = {"--checks", "--findings", "--corrections", "--fail-on-findings"}
REPORT = {"--output", "--json", "--csv", "--tasks", "--fail-on"}
OPTIONS = {
    "audit": TABLE | REPORT | CHECKS | PRIVACY | {"--fdr"},
    "check": TABLE | CHECKS,
    "value": TABLE | PRIVACY | {"--output", "--method", "--scoring", "--empty-utility"},
    "clean": TABLE | {"--output", "--method", "--drop", "--from", "--report"},
    "fix": {"--output", "--sep", "--encoding", "--skip-lines", "--changes"},
    "review": REPORT,
    "buyer export": {
        *("--representation", "--epsilon", "--seed", "--columns", "--output"),
    },
    "buyer score": {"--output", "--pairs"},
    "seller summarize": PRIVACY | {"--relation", "--columns", "--output"},
    "party model": {
        *("--target", "--ignore", "--positive", "--value", "--semivalue", "--sep"),
        *("--decimal", "--output"),
    },
    "party release": PRIVACY | {"--party", "--sep", "--decimal", "--output"},
    "party score": {"--validation", "--seed", "--budget", "--unit", "--output"},
    "party reward": {"--validation", "--seed", "--n-draws", "--output"},
    "party gain": {"--sep", "--decimal"},
    "party predict": {"--sep", "--decimal", "--output"},
    "ledger new": {"--epsilon", "--delta", "--relation"},
    "ledger spend": {"--epsilon", "--delta", "--relation"},
}
CASES = [
    pytest.param(name, option, id=f"{name} {option}")
    for name, options in OPTIONS.items()
    for option in sorted(options)
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the files of the lines."""
    folder = tmp_path_factory.mktemp("options")
    rng = np.random.default_rng(0)
    rows = [
        f"{number:.3f},{i % 5},{i % 7},{'uv'[i % 2]}"
        for i, number in enumerate(rng.normal(size=40))
    ]
    (folder / "t.csv").write_text("\n".join(["a,b,g,y", *rows]))
    (folder / "v.csv").write_text("\n".join(["a,b,g,y", *rows]))
    (folder / "c.csv").write_text("row,column,old,new,accept\n2,y,u,v,true\n")
    (folder / "r.npy").write_text("no array")
    np.save(folder / "rows.npy", rng.normal(size=(50, 4)))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert command("ledger new ledger.db name --epsilon 3 --delta 1e-4") == 0
        assert command("buyer export rows.npy --output m") == 0
        line = "party model t.csv --target y --ignore g --output p.json"
        assert command(line) == 0
        line = "party release p.json t.csv --party a --epsilon 9 --delta 1e-5"
        assert command(f"{line} --output a.json") == 0
    return folder


@pytest.mark.parametrize(("name", "option"), CASES)
def test_a_bad_value_of_an_option_is_refused_by_its_name(
    name, option, folder, monkeypatch, capsys
):
    monkeypatch.chdir(folder)
    words = [*name.split(), *LINES[name].split()]
    if option in words:
        words[words.index(option) + 1] = BAD[option]
    else:
        words += [option, BAD[option]]
    if (name, option) == ("party reward", "--output"):
        words[-1] = "t.csv"  # no folder
    if (name, option) == ("party score", "--unit"):
        words += ["--budget", "9"]
    if name in ("audit", "value") and option in ("--epsilon", "--delta", "--ledger"):
        words += ["--validation", "v.csv", "--equal-rows"]
        words += [] if option == "--epsilon" else ["--epsilon", "1"]
        words += ["--method", "tknn"] if name == "value" else []
    if option == "--scoring":
        words += ["--method", "data-shapley"]
    try:
        code = command(words)
    except SystemExit as ended:  # of the parser
        code = ended.code
    assert code == 2
    lines = capsys.readouterr().err.splitlines()
    [error] = [line for line in lines if line.startswith("error: ")]
    assert re.search(rf"{option}\b", error)


@pytest.mark.parametrize("name", LINES)
def test_every_option_of_a_command_is_in_the_table(name, capsys):
    with pytest.raises(SystemExit):
        command(f"{name} --help")
    options = set(re.findall(r"--[a-z-]+", capsys.readouterr().out))
    mentioned = {"--method", "--target", "--validation", "--json", "--from", "--drop"}
    assert options - OPTIONS[name] - ANY <= mentioned
    assert OPTIONS[name] <= options


# Call of the library -> the parameter that its error has as a field.
X = np.arange(40.0).reshape(-1, 2)
Y = np.arange(20) % 2
CALLS = {
    "separator": lambda path: read_table(path, separator="ab"),
    "encoding": lambda path: read_table(path, encoding="z"),
    "decimal": lambda path: read_table(path, decimal="x"),
    "dates": lambda path: read_table(path, dates="ymd"),
    "task": lambda path: read_table(path, task="x"),
    "skip_lines": lambda path: fix_table(path.read_bytes(), [], skip_lines=-1),
    "max_rows": lambda path: read_table(path, max_rows=1),
    "latest_year": lambda path: read_table(path, latest_year=3),
    "text": lambda path: read_table(path, text="z"),
    "missing": lambda path: read_table(path, missing="9=z"),
    "target": lambda path: read_table(path, "z"),
    "header": lambda path: read_table(_headless(path)),
    "epsilon": lambda path: skvalue.TKNNShapleyValuer(epsilon=-1).fit(X, Y),
    "X_val": lambda path: skvalue.TKNNShapleyValuer(epsilon=1).fit(X, Y),
    "groups": lambda path: skvalue.KNNShapleyValuer().fit(X, Y, groups=Y[:3]),
    "fdr": lambda path: skvalue.LabelErrorDetector(fdr=7).fit(X, Y),
    "drop": lambda path: ValueFilter(skvalue.KNNShapleyValuer(), 40).fit(X, Y),
    "y": lambda path: skvalue.audit.audit_table(path, Y, target="y"),
    "checks": lambda path: skvalue.audit.audit_table(X, Y, checks="x"),
}


def _headless(path):
    """The file of a table whose first line is data."""
    other = path.with_name("headless.csv")
    other.write_text("1,2\n3,4\n5,6\n")
    return other


@pytest.mark.parametrize("parameter", CALLS)
def test_an_error_has_its_parameter_as_a_field(parameter, folder):
    with pytest.raises(ParameterError) as refused:
        CALLS[parameter](folder / "t.csv")
    assert refused.value.parameter == parameter
    loaded = pickle.loads(pickle.dumps(refused.value))
    assert (loaded.parameter, str(loaded)) == (parameter, str(refused.value))


def test_an_error_of_a_constraint_is_a_type_error_as_in_scikit_learn():
    with pytest.raises(TypeError, match="The 'fdr' parameter of LabelErrorDetector"):
        skvalue.LabelErrorDetector(fdr=7).fit(X, Y)
