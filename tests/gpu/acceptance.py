"""What a GPU gives: the tests that need one, then a table of times and errors.

    python tests/gpu/acceptance.py [--out doc/benchmarks] [--wheels FOLDER] [--quick]

It needs numpy, pytest, torch >= 2.6 and faiss-gpu >= 1.14.3 (pip install
".[test,gpu]" without faiss-cpu), and no network. Where wheels had to come in parts,
FOLDER has them as NAME.whl.part0, NAME.whl.part1 and so on: they are joined and
installed first.

It writes NAME.json and NAME.md, NAME being that of the card, and exits with 1 if a test
failed or values differ. Without a card it runs small sizes on the simulated one of
tests/simulated_gpu.py, whose times say nothing.
"""

import argparse
import json
import platform
import re
import subprocess
import sys
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

PACKAGES = ("skvalue", "numpy", "scikit-learn", "torch", "faiss-gpu", "faiss-cpu")
# Rows, validation points, columns.
SIZES = [(n_rows, 1000, d) for n_rows in (50_000, 1_000_000) for d in (32, 512, 2048)]
SMALL_SIZES = [(300, 20, 8)]
TOLERANCE = 1e-9
REPEATS = 3  # of each time


def join_wheels(folder):
    """Join wheels that came in parts, and install all of a folder."""
    parts = {}
    for path in sorted(Path(folder).glob("*.whl.part*")):
        name, _, number = path.name.rpartition(".part")
        parts.setdefault(name, []).append((int(number), path))
    for name, of_wheel in parts.items():
        with (Path(folder) / name).open("wb") as wheel:
            for _, path in sorted(of_wheel):
                wheel.write(path.read_bytes())
    wheels = sorted(Path(folder).glob("*.whl"))
    command = [sys.executable, "-m", "pip", "install", "--no-index", "--no-deps"]
    subprocess.run([*command, *map(str, wheels)], check=True)


def run_tests(has_card):
    """Number of tests that passed, failed and were skipped."""
    chosen = ["-m", "gpu"] if has_card else ["tests/neighbors/test_faiss_gpu.py"]
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", *chosen]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    print(result.stdout[-2000:], flush=True)
    counts = {}
    for kind in ("passed", "failed", "skipped", "error"):
        found = re.search(rf"(\d+) {kind}", result.stdout)
        counts[kind] = int(found.group(1)) if found else 0
    counts["exit_code"] = result.returncode
    return counts


def installed():
    """Versions of the packages that matter."""
    versions = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions


def median_time(function, synchronize):
    """Seconds of a call, the median of a few, after one that warms up."""
    function()
    synchronize()
    seconds = []
    for _ in range(REPEATS):
        start = perf_counter()
        function()
        synchronize()
        seconds.append(perf_counter() - start)
    return sorted(seconds)[len(seconds) // 2]


def n_transfers(function, has_card):
    """Copies to the card and from it, and waits for it, in a call.

    Of a real card these are those that its profiler sees.
    """
    if not has_card:
        from tests import simulated_gpu

        with simulated_gpu.count_waits() as waits:
            function()
        return len(waits)

    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiled:
        function()
    return sum(
        event.count
        for event in profiled.key_averages()
        if event.key.startswith("Memcpy") or event.key == "cudaStreamSynchronize"
    )


def neighbour_lines(sizes, device, synchronize, has_card):
    """Times and errors of the neighbour methods, a dict a line."""
    import numpy as np
    import torch
    from sklearn.base import clone

    from skvalue import KNNShapleyValuer, TKNNShapleyValuer

    valuers = {
        "KNN": KNNShapleyValuer(5, metric="cosine"),
        "KNN, max_rank=100": KNNShapleyValuer(5, metric="cosine", max_rank=100),
        "TKNN": TKNNShapleyValuer(0.9),
        "private TKNN": TKNNShapleyValuer(0.9, epsilon=1.0, delta=1e-6),
    }
    for n_rows, n_points, d in sizes:
        rng = np.random.default_rng(0)
        X = rng.standard_normal((n_rows, d), dtype=np.float32)
        y = rng.integers(0, 10, n_rows)
        points = {
            "X_val": rng.standard_normal((n_points, d), dtype=np.float32),
            "y_val": rng.integers(0, 10, n_points),
        }
        rows = torch.from_numpy(X).to(device)
        queries = torch.from_numpy(points["X_val"]).to(device)

        def product_and_sort(rows=rows, queries=queries):
            # In tiles, as a sort of all pairs would not fit.
            for tile in queries.split(100):
                torch.sort(tile @ rows.T, dim=1)

        floor = median_time(product_and_sort, synchronize)
        del rows, queries
        for name, valuer in valuers.items():
            exact = None
            for engine, on in (("native", "cpu"), ("torch", "cuda"), ("faiss", "cuda")):
                fitted = clone(valuer).set_params(engine=engine, device=on)
                line = {"method": name, "n_rows": n_rows, "n_points": n_points}
                line |= {"d": d, "engine": engine, "device": on}
                try:
                    fitted.fit(X, y, **points)
                except (ValueError, ImportError) as error:
                    yield line | {"refused": str(error)}
                    continue

                def fit(fitted=fitted, X=X, y=y, points=points):
                    fitted.fit(X, y, **points)

                seconds = median_time(fit, synchronize)
                line["pairs_per_second"] = n_rows * n_points / seconds
                line["times_product_and_sort"] = seconds / floor
                if on == "cuda":
                    line["transfers"] = n_transfers(fit, has_card)
                # A private fit draws other noise each time.
                if "private" not in name:
                    exact = fitted.values_ if exact is None else exact
                    line["largest_error"] = float(np.abs(fitted.values_ - exact).max())
                yield line


def network_lines(is_quick, synchronize, has_card):
    """Times of the methods that train on a card, a dict a line."""
    import numpy as np
    import torch
    from torch import nn

    from skvalue import GradientSemivalueValuer, InRunShapleyValuer, UnrolledValuer
    from skvalue.priarta import SimCLR

    rng = np.random.default_rng(0)
    n_rows = 60 if is_quick else 5000
    X = rng.standard_normal((n_rows, 32), dtype=np.float32)
    y = rng.integers(0, 3, n_rows)
    points = {"X_val": X[:20] + np.float32(0.1), "y_val": y[:20]}
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 3))
    valuers = [
        GradientSemivalueValuer(network, n_permutations=2, random_state=0),
        InRunShapleyValuer(network, random_state=0),
        UnrolledValuer(network, random_state=0),
        SimCLR(n_epochs=1, random_state=0),
    ]
    images = rng.random((n_rows, 32, 32, 3), dtype=np.float32)
    for valuer in valuers:
        for device in ("cpu", "cuda"):
            valuer.set_params(device=device)

            def fit(valuer=valuer):
                if isinstance(valuer, SimCLR):
                    valuer.fit(images)
                else:
                    valuer.fit(X, y, **points)

            line = {"method": type(valuer).__name__, "device": device}
            line |= {"n_rows": n_rows}
            try:
                line["seconds"] = median_time(fit, synchronize)
                if device == "cuda":
                    line["transfers"] = n_transfers(fit, has_card)
            except (ValueError, ImportError) as error:
                line["refused"] = str(error)
            yield line


def shown(cell):
    """An entry of a table."""
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell)


def to_markdown(report):
    """The report as a page."""
    lines = [
        f"# {report['card']}",
        "",
        f"`python tests/gpu/acceptance.py`, {report['date']}; "
        + ", ".join(f"{name} {number}" for name, number in report["versions"].items())
        + ".",
        "",
        f"Tests: {report['tests']['passed']} passed, {report['tests']['failed']} "
        f"failed, {report['tests']['skipped']} skipped.",
        "",
    ]
    if report["is_simulated"]:
        lines += ["The card is simulated: its times say nothing.", ""]
    for name, table in report["tables"].items():
        columns = list(dict.fromkeys(key for line in table for key in line))
        lines += [f"## {name}", "", f"| {' | '.join(columns)} |"]
        lines.append("|" + "---|" * len(columns))
        for line in table:
            cells = [line.get(column, "") for column in columns]
            shown = [
                f"{cell:.4g}" if isinstance(cell, float) else cell for cell in cells
            ]
            lines.append(f"| {' | '.join(map(str, shown))} |")
        lines.append("")
    return "\n".join(lines)


def main(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", default=str(ROOT / "doc" / "benchmarks"))
    parser.add_argument("--wheels")
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--no-tests", action="store_true", help="the table alone")
    options = parser.parse_args(arguments)
    if options.wheels:
        join_wheels(options.wheels)

    import pytest
    import torch

    has_card = torch.cuda.is_available()
    tests = {"passed": 0, "failed": 0, "skipped": 0, "exit_code": 0}
    if not options.no_tests:
        tests = run_tests(has_card)

    with pytest.MonkeyPatch.context() as monkeypatch:
        device = "cuda"
        name = torch.cuda.get_device_name() if has_card else "simulated card"
        synchronize = torch.cuda.synchronize if has_card else lambda: None
        if not has_card:
            from tests import simulated_faiss, simulated_gpu
            from tests.conftest import simulate_a_gpu

            simulated_gpu.install()
            device = simulate_a_gpu(monkeypatch).NAME
            simulated_faiss.install(monkeypatch)
        is_quick = options.quick or not has_card
        sizes = SMALL_SIZES if is_quick else SIZES
        tables = {
            "Neighbours": [*neighbour_lines(sizes, device, synchronize, has_card)],
            "Networks": [*network_lines(is_quick, synchronize, has_card)],
        }

    report = {
        "card": name,
        "is_simulated": not has_card,
        "date": date.today().isoformat(),
        "processor": platform.processor() or platform.machine(),
        "versions": installed(),
        "tests": tests,
        "tables": tables,
    }
    folder = Path(options.out)
    folder.mkdir(parents=True, exist_ok=True)
    stem = re.sub(r"\W+", "_", name.lower())
    (folder / f"{stem}.json").write_text(json.dumps(report, indent=1), encoding="utf-8")
    (folder / f"{stem}.md").write_text(to_markdown(report), encoding="utf-8")
    print(to_markdown(report))

    errors = [line.get("largest_error", 0) for line in tables["Neighbours"]]
    return int(tests["exit_code"] != 0 or max(errors) > TOLERANCE)


if __name__ == "__main__":
    sys.exit(main())
