"""The documentation builds without a warning, covers everything public, and its examples run."""

import doctest
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from test_lint import public_names

ROOT = Path(__file__).resolve().parents[1]
DOC = ROOT / "doc"
BUILT = {"_build", "_templates", "generated"}
PAGES = sorted(page for page in DOC.rglob("*.rst") if not BUILT & set(page.relative_to(DOC).parts))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOC)))
def test_examples_of_a_page(page):
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    result = doctest.testfile(str(page), module_relative=False, optionflags=flags, encoding="utf-8")
    assert result.failed == 0, "What failed is printed above."


def test_methods_have_pages_that_start_with_an_example():
    for method in ("knn_shapley", "tknn_shapley", "semivalues"):
        lines = (DOC / "user_guide" / f"{method}.rst").read_text(encoding="utf-8").splitlines()
        title = next(i for i, line in enumerate(lines) if line.startswith("==="))
        assert lines[title + 2].startswith(">>> ")


@pytest.fixture(scope="module")
def html(tmp_path_factory):
    """The pages, built from a copy: what an earlier build left in doc/ neither helps nor harms."""
    folder = tmp_path_factory.mktemp("doc")
    shutil.copytree(DOC, folder / "doc", ignore=shutil.ignore_patterns("_build", "generated"))
    for included in ("skvalue", "tests", "examples"):
        (folder / included).symlink_to(ROOT / included, target_is_directory=True)
    sphinx = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html"]
    result = subprocess.run(
        [*sphinx, folder / "doc", folder / "html"], cwd=ROOT, capture_output=True, text=True
    )
    advice = "Run: python -m sphinx -W --keep-going -b html doc doc/_build/html"
    assert result.returncode == 0, f"{result.stderr}\n{advice}"
    return folder / "html"


@pytest.mark.xdist_group("doc")
def test_builds_without_a_warning(html):
    assert (html / "index.html").is_file()


@pytest.mark.xdist_group("doc")
def test_every_public_name_has_a_page(html):
    built = {page.stem for page in (html / "generated").glob("*.html")}
    missing = set(public_names()) - built
    assert not missing, "List their rooms in doc/api.rst."
