"""Kills a pipeline at one aimed point. Python imports this file by itself where it is on PYTHONPATH.

FAULT_POINT is `module:name|before|3`: the third call of that function, in this process, is not begun
(or, with `after`, not returned from). FAULT_DRIVER is the process that is killed, with its children: the
point may lie in a worker of Spark as well as in the driver.

FAULT_CLOCK is by how many seconds the clock of Python is wrong.
"""

import functools
import importlib.abc
import importlib.util
import os
import signal
import sys
import time


def kill() -> None:
    import psutil

    driver = psutil.Process(int(os.environ["FAULT_DRIVER"]))
    others = driver.children(recursive=True)
    driver.kill()
    for process in others:
        try:
            process.kill()
        except psutil.NoSuchProcess:
            continue
    os.kill(os.getpid(), signal.SIGKILL)


def aimed(function, when, number):
    calls = 0

    @functools.wraps(function)
    def call(*arguments, **options):
        nonlocal calls
        calls += 1
        if when == "before" and calls == number:
            kill()
        result = function(*arguments, **options)
        if when == "after" and calls == number:
            kill()
        return result

    return call


class Patching(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Loads the module as always, then puts the aimed function in place of the real one."""

    def __init__(self, module, name, when, number):
        self.module, self.name, self.when, self.number = module, name, when, number

    def find_spec(self, fullname, path=None, target=None):
        if fullname != self.module:
            return None
        sys.meta_path.remove(self)
        self.spec = importlib.util.find_spec(fullname)
        self.loader = self.spec.loader
        self.spec.loader = self
        return self.spec

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        self.loader.exec_module(module)
        *owners, name = self.name.split(".")
        owner = functools.reduce(getattr, owners, module)
        setattr(owner, name, aimed(getattr(owner, name), self.when, self.number))


def shift_clock(seconds):
    right, right_ns = time.time, time.time_ns
    time.time = lambda: right() + seconds
    time.time_ns = lambda: right_ns() + int(seconds * 1_000_000_000)


if offset := float(os.environ.get("FAULT_CLOCK") or 0):
    shift_clock(offset)

if point := os.environ.get("FAULT_POINT"):
    place, when, number = point.split("|")
    module, _, name = place.partition(":")
    sys.meta_path.insert(0, Patching(module, name, when, int(number)))
