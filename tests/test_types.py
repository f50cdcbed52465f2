"""What an editor sees: names imported at first use are known without running code."""

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
        value = getattr(package, bound)
        assert getattr(value, "__module__", "skvalue").startswith("skvalue"), bound
    assert dir(package) == package.__all__ == sorted(package.__all__)
    assert set(package.__all__) <= names
    message = f"module '{name}' has no attribute 'nothing'"
    with pytest.raises(AttributeError, match=message):
        _ = package.nothing


def code_of_readme():
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


@pytest.fixture(scope="module")
def type_errors(tmp_path_factory):
    """Errors of the type checker by file: of lines of code, and of the guide."""
    pytest.importorskip(
        "basedpyright", reason="the type checker basedpyright is not installed"
    )
    folder = tmp_path_factory.mktemp("types")
    start = f"import skvalue\nimport skvalue.priarta\n{code_of_readme()}\n"
    for number, code in enumerate(CHECKED):
        (folder / f"code_{number}.py").write_text(start + code + "\n")
    for page in GUIDE:
        text = page.read_text(encoding="utf-8")
        examples = doctest.DocTestParser().get_examples(text)
        code = "".join(example.source for example in examples)
        (folder / f"page_{page.stem}.py").write_text(code)
    settings = {"typeCheckingMode": "standard", "extraPaths": [str(ROOT)]}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    options = ["--outputjson", "--pythonpath", sys.executable]
    command = [sys.executable, "-m", "basedpyright", *options]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    report = json.loads(result.stdout)
    assert report["summary"]["filesAnalyzed"] == len(CHECKED) + len(GUIDE)
    errors = {path.name: [] for path in folder.glob("*.py")}
    for entry in report["generalDiagnostics"]:
        if entry["severity"] == "error":
            errors[Path(entry["file"]).name].append(entry["message"])
    return errors


@pytest.mark.slow
@pytest.mark.parametrize("page", GUIDE, ids=lambda page: page.stem)
def test_code_of_the_guide_passes_a_type_checker(page, type_errors):
    errors = type_errors[f"page_{page.stem}.py"]
    ours = [error for error in errors if not FOREIGN.search(error.splitlines()[0])]
    assert ours == []


@pytest.mark.slow
@pytest.mark.parametrize("code", CHECKED)
def test_a_type_checker_finds_wrong_names(code, type_errors):
    errors = type_errors[f"code_{list(CHECKED).index(code)}.py"]
    words = CHECKED[code]
    assert len(errors) == len(words), errors
    for word, error in zip(words, errors):
        assert word in error


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
def test_names_are_completed(code, completed):
    jedi = pytest.importorskip("jedi", reason="jedi is not installed")
    project = jedi.Project(str(ROOT), sys_path=[str(ROOT), *sys.path])
    names = {entry.name for entry in jedi.Script(code, project=project).complete()}
    assert completed <= names


def test_versions_are_those_of_packages_that_are_used(capsys):
    skvalue.show_versions()
    lines = capsys.readouterr().out.splitlines()
    versions = dict(line.split(": ", 1) for line in lines)
    assert versions["python"] == sys.version.split()[0]
    assert {"numpy", "scikit-learn", "opendp", "pandas"} <= set(versions)
    assert not {"pytest", "sphinx"} & set(versions)


def test_the_version_has_one_home():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    version = settings["tool"]["setuptools"]["dynamic"]["version"]
    assert version == {"attr": "skvalue.__version__"}
    cited = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"version: {skvalue.__version__}\n" in cited
