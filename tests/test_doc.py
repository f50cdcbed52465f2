"""The examples of the documentation run. `test_pages.py` builds the pages."""

import doctest
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOC = ROOT / "doc"
BUILT = {"_build", "_templates", "auto_examples", "generated"}
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
