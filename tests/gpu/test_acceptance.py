"""The command that measures a card, on the simulated one."""

import json
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from . import acceptance

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_the_command_writes_a_table_of_the_simulated_card(tmp_path):
    pytest.importorskip("torch")
    pytest.importorskip("faiss")
    pytest.importorskip("kornia")
    command = [sys.executable, "tests/gpu/acceptance.py", "--no-tests", "--quick"]
    result = subprocess.run(
        [*command, "--out", str(tmp_path)], cwd=ROOT, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr[-2000:]

    (path,) = tmp_path.glob("*.json")
    report = json.loads(path.read_text(encoding="utf-8"))
    page = path.with_suffix(".md").read_text(encoding="utf-8")
    assert report["card"] in page
    neighbours = report["tables"]["Neighbours"]
    networks = report["tables"]["Networks"]
    assert not any("refused" in line for line in neighbours + networks)
    assert {line["engine"] for line in neighbours} == {"native", "torch", "faiss"}
    for line in neighbours + networks:
        assert line.get("largest_error", 0) <= 1e-9
        assert (line["device"] == "cuda") == ("copies" in line and "waits" in line)
        assert line["method"] in page
    crossings = report["tables"]["CPU and card"]
    assert {line["method"] for line in crossings} == {"KNN", "TKNN"}
    assert all(line["torch_seconds"] > 0 for line in crossings)
    assert "GPU_FROM in skvalue/_utils/measured.py" in page
    if report["is_simulated"]:
        assert "its times say nothing" in page
        assert report["gpu_from"] is None


# From which size on a card is faster -------------------------------------------------


@pytest.mark.parametrize(
    ("gains", "number"),
    [
        ({10: [0.1, 0.2], 100: [0.5, 2.0], 1000: [3.0, 4.0], 5000: [9.0]}, 1000),
        ({10: [2.0], 100: [0.9], 1000: [3.0]}, 1000),
        ({10: [2.0], 100: [3.0]}, 10),
        ({10: [0.2], 100: [0.9]}, None),
        ({10: [0.2], 100: [3.0, 0.9]}, None),
    ],
    ids=["from 1000", "a smaller one is slower", "all", "none", "one method is slower"],
)
def test_the_card_is_faster_from_a_number_on(gains, number):
    lines = [
        {"multiplications": size, "gain": gain}
        for size, of_size in gains.items()
        for gain in of_size
    ]
    assert acceptance.crossing(lines) == number
    text = acceptance.crossing_text(number)
    assert ("stays None" if number is None else f"to {number}.") in text


# Wheels that came in parts -----------------------------------------------------------

WHEEL = "tiny_wheel-1.0-py3-none-any.whl"


@pytest.fixture
def wheel(tmp_path):
    """The bytes of a wheel with one module."""
    path = tmp_path / "whole" / WHEEL
    path.parent.mkdir()
    info = "tiny_wheel-1.0.dist-info"
    files = {
        "tiny_wheel.py": "NUMBER = 7\n",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: tiny-wheel\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: a test\n"
        "Root-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": "",
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path.read_bytes()


def write_parts(folder, wheel, numbers, n_parts):
    """Write some of the parts of a wheel; returns the folder."""
    folder.mkdir()
    size = -(-len(wheel) // n_parts)
    for number in numbers:
        part = wheel[number * size : (number + 1) * size]
        (folder / f"{WHEEL}.part{number}").write_bytes(part)
    return folder


def test_parts_of_a_wheel_are_joined_in_the_order_of_their_numbers(tmp_path, wheel):
    """Of which 10 is after 9."""
    folder = write_parts(tmp_path / "parts", wheel, range(12), 12)
    (path,) = acceptance.join_wheels(folder)
    assert path.read_bytes() == wheel


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ([0, 2], "lacks part1"),
        ([1, 2], "lacks part0"),
        ([0, 1], "its last part is missing"),
        ([], "has no wheel, and no parts"),
    ],
)
def test_a_missing_part_is_one_error(numbers, message, tmp_path, wheel):
    folder = write_parts(tmp_path / "parts", wheel, numbers, 3)
    with pytest.raises(SystemExit, match=message):
        acceptance.join_wheels(folder)


def test_a_part_without_a_number_is_an_error(tmp_path, wheel):
    folder = write_parts(tmp_path / "parts", wheel, range(3), 3)
    (folder / f"{WHEEL}.part3.tmp").write_bytes(b"")
    with pytest.raises(SystemExit, match="must end with the number"):
        acceptance.join_wheels(folder)


@pytest.mark.slow
def test_joined_wheels_are_installed_without_a_network(tmp_path, wheel, monkeypatch):
    """In an environment of their own."""
    folder = write_parts(tmp_path / "parts", wheel, range(3), 3)
    environment = tmp_path / "environment"
    venv.create(environment, with_pip=True)
    bin_folder = "Scripts" if sys.platform == "win32" else "bin"
    python = str(environment / bin_folder / "python")
    monkeypatch.setattr(acceptance.sys, "executable", python)
    acceptance.install(acceptance.join_wheels(folder))
    command = [python, "-c", "import tiny_wheel; print(tiny_wheel.NUMBER)"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.stdout == "7\n"
