"""CPU time of a test run, child processes included.

Its sum is printed, and with `--cpu-durations` the tests of most time. Registered by
tests/conftest.py. Wall time depends on what else the machine does; CPU time hardly.
"""

import os

import psutil
import pytest

AIM = 10  # minutes, of the default tier


def cpu_seconds():
    """CPU seconds of this process and of all its children, those alive included."""
    times = os.times()
    seconds = own_seconds() + times.children_user + times.children_system
    for child in psutil.Process().children(recursive=True):
        try:
            seconds += sum(child.cpu_times()[:4])
        except psutil.Error:  # it has ended meanwhile
            continue
    return seconds


def own_seconds():
    """CPU seconds of this process, its children excluded."""
    times = os.times()
    return times.user + times.system


class CPUTime:
    """Measures the tests of one process.

    The controller of pytest-xdist adds up its workers.
    """

    def __init__(self, config):
        self.config = config
        self.workers = 0.0
        self.by_test = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        if not self.config.getoption("--cpu-durations"):
            return (yield)
        before = cpu_seconds()
        result = yield
        self.by_test[item.nodeid] = cpu_seconds() - before
        return result

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self):
        if hasattr(self.config, "workeroutput"):
            self.config.workeroutput["cpu_time"] = (cpu_seconds(), self.by_test)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node):
        seconds, by_test = getattr(node, "workeroutput", {}).get("cpu_time", (0.0, {}))
        self.workers += seconds
        self.by_test.update(by_test)

    def pytest_terminal_summary(self, terminalreporter):
        # Workers are children of the controller. They are counted once, by what they
        # report.
        seconds = own_seconds() + self.workers if self.workers else cpu_seconds()
        n_shown = self.config.getoption("--cpu-durations")
        longest = sorted(self.by_test, key=self.by_test.get, reverse=True)[:n_shown]
        for test in longest:
            terminalreporter.write_line(f"{self.by_test[test]:8.2f} s CPU  {test}")
        terminalreporter.write_line(
            f"CPU time, child processes included: {seconds / 60:.1f} min "
            f"(aim of the default tier: {AIM})"
        )
