"""What an editor sees: names imported at first use are known to tools that run
nothing."""

import doctest
import json
import re
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import skvalue
from tests import house

ROOT = Path(__file__).resolve().parents[1]


STUBS = sorted(house.PACKAGE.rglob("__init__.pyi"))


@pytest.mark.parametrize("stub", STUBS, ids=house.dotted)
def test_names_of_stubs_are_there(stub):
    name = house.dotted(stub).removesuffix(".__init__")
    package = import_module(name)
    names = {bound for _, _, bound in house.imported(stub)}
    for bound in names:
        found = getattr(package, bound)
        assert getattr(found, "__module__", "skvalue").startswith("skvalue"), bound
    assert dir(package) == package.__all__ == sorted(package.__all__)
    assert set(package.__all__) <= names
    with pytest.raises(
        AttributeError, match=f"module '{name}' has no attribute 'nothing'"
    ):
        _ = package.nothing


def _readme_code():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    return "\n".join(re.findall(r"```python\n(.*?)```", readme, flags=re.DOTALL))


# Code -> the words that an error of the type checker names.
CHECKED = {
    "": [],  # README's own lines
    "skvalue.KNNShapleyValuer(n_neighbours=5)": ["n_neighbours"],
    "skvalue.NoSuchThing": ["NoSuchThing"],
    "from skvalue import NoSuchThing": ["NoSuchThing"],
    "skvalue.priarta.NoSuchThing": ["NoSuchThing"],
    "skvalue.priarta.SimCLR(epoch=3)": ["epoch"],
    "skvalue.audit.audit_table(X, y, targett='y')": ["targett"],
}


GUIDE = sorted((ROOT / "doc" / "user_guide").glob("*.rst"))
# Errors of the guide's code that are scikit-learn's: types of what its functions
# return.
FOREIGN = re.compile(r'^(Operator |Cannot access attribute .* "(tuple|list|Pipeline))')


@pytest.mark.slow
def test_type_checker(tmp_path):
    pytest.importorskip(
        "basedpyright", reason="the type checker basedpyright is not installed"
    )
    start = f"import skvalue\nimport skvalue.priarta\n{_readme_code()}\n"
    for number, code in enumerate(CHECKED):
        (tmp_path / f"code_{number}.py").write_text(start + code + "\n")
    for page in GUIDE:
        examples = doctest.DocTestParser().get_examples(
            page.read_text(encoding="utf-8")
        )
        (tmp_path / f"page_{page.stem}.py").write_text(
            "".join(each.source for each in examples)
        )
    settings = {"typeCheckingMode": "standard", "extraPaths": [str(ROOT)]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [
        sys.executable,
        "-m",
        "basedpyright",
        "--outputjson",
        "--pythonpath",
        sys.executable,
    ]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    report = json.loads(result.stdout)
    assert report["summary"]["filesAnalyzed"] == len(CHECKED) + len(GUIDE)
    wrong = [
        (entry["file"], entry["range"]["start"]["line"], entry["message"])
        for entry in report["generalDiagnostics"]
        if entry["severity"] == "error" and "page_" in entry["file"]
    ]
    assert [
        error for error in wrong if not FOREIGN.search(error[-1].splitlines()[0])
    ] == []
    for number, (code, words) in enumerate(CHECKED.items()):
        errors = [
            entry["message"]
            for entry in report["generalDiagnostics"]
            if entry["severity"] == "error"
            and entry["file"].endswith(f"code_{number}.py")
        ]
        assert len(errors) == len(words), (code, errors)
        assert all(word in error for word, error in zip(words, errors)), (code, errors)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "completed"),
    [
        ("from skvalue import KNN", {"KNNShapleyValuer"}),
        ("import skvalue\nskvalue.KNNShapleyValuer(n_", {"n_neighbors=", "n_jobs="}),
        ("import skvalue\nskvalue.KNNShapleyValuer().val", {"values_"}),
        ("from skvalue.priarta import Sim", {"SimCLR"}),
    ],
)
def test_completion(code, completed):
    jedi = pytest.importorskip("jedi", reason="jedi is not installed")
    project = jedi.Project(str(ROOT), sys_path=[str(ROOT), *sys.path])
    names = {entry.name for entry in jedi.Script(code, project=project).complete()}
    assert completed <= names


def test_versions_are_of_one_place(capsys):
    skvalue.show_versions()
    printed = dict(line.split(": ", 1) for line in capsys.readouterr().out.splitlines())
    assert printed["python"] == sys.version.split()[0]
    assert {"numpy", "scikit-learn", "opendp", "pandas"} <= set(printed)
    assert not {"pytest", "sphinx"} & set(printed)
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert (
        settings["tool"]["setuptools"]["dynamic"]["version"]["attr"]
        == "skvalue.__version__"
    )
    cited = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"version: {skvalue.__version__}\n" in cited
