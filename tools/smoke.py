"""One fit, one test, one comparison and one command of an installed muhat, without extras or with one: ``make wheel``.

``python tools/smoke.py files`` tries what the extra ``files`` brings.
"""

import subprocess
import sys
from importlib import import_module

import numpy as np

import muhat as mh

X = np.random.default_rng(0).normal(size=(40, 3))


def compare_files() -> None:
    for name, rows in (("a.csv", X), ("b.csv", X + 3)):
        np.savetxt(name, rows, delimiter=",", header="x,y,z", comments="")
    assert mh.compare("a.csv", "b.csv", random_state=0).differs


BRINGS = {
    "fast": ("numba", lambda: mh.KernelMean().fit(np.repeat(X, 100, axis=0))),
    "plot": ("matplotlib", lambda: mh.mmd_test(X, X + 3, random_state=0).plot()),
    "files": ("duckdb", compare_files),
    "data": ("pandas", mh.load_nyc_hours),
    "reproduce": ("jinja2", None),  # the reproduction is in a clone alone
    "prepare": ("cv2", None),
    "dask": ("distributed", None),
}
"""What an extra brings, and a call that needs it."""

assert "site-packages" in mh.__file__, f"{mh.__file__} is not the installed wheel"
assert 0 <= mh.ShrunkKernelMean().fit(X).shrinkage_ <= 1
assert mh.mmd_test(X, X + 3, random_state=0).pvalue < 0.05
assert mh.compare(X, X + 3, random_state=0).differs
subprocess.run([sys.executable, "-m", "muhat", "--version"], check=True)
for extra in sys.argv[1:]:
    module, call = BRINGS[extra]
    import_module(module)
    if call is not None:
        call()
print("the wheel works", *sys.argv[1:])
