"""The page of a report in a browser: buttons, filters, small screens, dark mode."""

import json
import re
import shutil
import subprocess
from html import unescape

import pytest
from matplotlib.image import imread

from skvalue.audit import read_corrections

BROWSERS = map(shutil.which, ("chromium", "chromium-browser", "chrome"))
CHROMIUM = next(filter(None, BROWSERS), None)
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        CHROMIUM is None, reason="needs the browser Chromium on the PATH"
    ),
    pytest.mark.xdist_group("browser"),
]
COMMAND = (
    CHROMIUM,
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--allow-file-access-from-files",
    "--host-resolver-rules=MAP * ~NOTFOUND",  # no network
    "--virtual-time-budget=100000",
)

# Uses the page as a person does, reloads it, and saves what was found as JSON.
PROBE = """<!DOCTYPE html><meta charset="utf-8">
<iframe style="border: 0; height: 900px"></iframe>
<script>
const frame = document.querySelector("iframe"), found = {};
let loads = 0;
frame.style.width = "1280px";
frame.onload = () => {
  const inside = frame.contentDocument;
  const rows = () => [...inside.querySelectorAll("#list tr[data-row]")];
  const seen = () => rows().filter((tr) => !tr.hidden).map((tr) => +tr.dataset.row);
  const says = (row) => inside.querySelector(`#list .verdict[data-row="${row}"]`);
  const pressed = () => [...inside.querySelectorAll("[aria-pressed=true]")]
    .map((button) => button.parentNode.dataset.row + button.dataset.say);
  if (++loads === 2) {  // after a reload
    found.kept = pressed();
    const own = frame.contentWindow;
    own.URL.createObjectURL = (blob) => {
      blob.text().then((text) => {
        found.csv = text;
        document.body.textContent = JSON.stringify(found);
        document.body.id = "found";
      });
      return "#";
    };
    own.HTMLAnchorElement.prototype.click = () => {};  // no download
    inside.querySelector("#save").click();
    return;
  }
  found.all = seen();
  found.light = inside.defaultView.getComputedStyle(inside.body).backgroundColor;
  inside.querySelector("[data-key=row]").click();
  found.sorted = seen();
  inside.querySelector("[data-key=label]").click();
  found.labels = rows().map((tr) => tr.dataset.label);
  inside.querySelector("#label").value = "setosa";
  inside.querySelector("#label").oninput();
  found.setosa = seen();
  const [first, second, third] = found.all.map(says);
  first.querySelector(".wrong").click();
  second.querySelector(".right").click();
  third.querySelector(".wrong").click();
  const input = third.querySelector(".new");
  input.value = "=cmd";
  input.dispatchEvent(new Event("input", { bubbles: true }));
  found.done = inside.querySelector("#done").textContent;
  found.pressed = pressed();
  inside.querySelectorAll("details").forEach((e) => { e.open = true; });
  frame.style.width = "400px";
  found.phone = inside.documentElement.scrollWidth;
  found.blocked = [];
  inside.addEventListener("securitypolicyviolation",
    (e) => found.blocked.push(e.blockedURI));
  const img = inside.createElement("img");
  inside.body.append(Object.assign(img, { src: "https://example.com/x" }));
  const script = inside.createElement("script");
  script.textContent = "document.title = 'injected'";
  inside.body.append(script);
  found.title = inside.title;
  setTimeout(() => frame.contentWindow.location.reload(), 100);
};
frame.src = "report.html";
</script>"""


@pytest.fixture(scope="module")
def page(iris_report, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    iris_report.to_html(path)
    return path


@pytest.fixture(scope="module")
def seen(page):
    """What the probe found in the page."""
    probe = page.with_name("probe.html")
    probe.write_text(PROBE, encoding="utf-8")
    options = ["--window-size=1400,1000", "--dump-dom", probe.as_uri()]
    run = subprocess.run(
        [*COMMAND, *options], capture_output=True, text=True, timeout=120
    )
    body = re.search('<body id="found">(.*)</body>', run.stdout, re.DOTALL)[1]
    return json.loads(unescape(body))


@pytest.fixture
def corrections(seen, tmp_path):
    """The file that the page saved."""
    path = tmp_path / "corrections.csv"
    path.write_text(seen["csv"])
    return path


def test_rows_are_sorted_and_filtered(iris_report, seen):
    numbers = iris_report.numbers[iris_report.listed].tolist()
    assert seen["all"] == numbers
    assert seen["sorted"] == sorted(numbers)
    assert seen["labels"] == sorted(seen["labels"])
    labels = iris_report.labels
    setosa = {row for row in iris_report.listed if labels[row] == "setosa"}
    assert set(seen["setosa"]) == setosa


def test_verdicts_survive_a_reload(seen):
    assert seen["done"] == "3"
    assert sorted(seen["kept"]) == sorted(seen["pressed"])
    assert len(seen["kept"]) == 3


def test_verdicts_are_saved_as_corrections(iris_report, seen, corrections):
    row = iris_report.listed[0]
    first, second, third = read_corrections(corrections)
    assert first.row == iris_report.numbers[row]
    assert first.old == iris_report.labels[row]
    assert first.new == iris_report.suggestions[row]
    assert first.accept
    assert not second.accept
    assert third.new == "=cmd"
    assert ",'=cmd," in seen["csv"]  # no formula of a spreadsheet


def test_corrections_come_back_as_verdicts(iris_report, corrections):
    rows = iris_report.listed[:3].tolist()
    verdicts = iris_report.read_verdicts(corrections).verdicts
    assert verdicts == dict(zip(rows, (True, False, True)))


def test_pictures_and_scripts_from_elsewhere_are_blocked(seen):
    assert set(seen["blocked"]) == {"https://example.com/x", "inline"}
    assert "injected" not in seen["title"]


def test_the_page_is_no_wider_than_a_phone(seen):
    assert seen["phone"] <= 400


def test_the_page_is_drawn_in_dark_mode(page, tmp_path):
    picture = tmp_path / "dark.png"
    options = [
        "--window-size=500,1200",  # headless windows are no narrower
        f"--screenshot={picture}",
        "--force-dark-mode",
        page.as_uri(),
    ]
    subprocess.run([*COMMAND, *options], capture_output=True, timeout=120, check=True)
    pixels = imread(picture)
    assert pixels.shape[:2] == (1200, 500)
    assert pixels[..., :3].std() > 0.05  # an empty page has 0
