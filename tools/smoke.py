"""One fit, one test, one comparison and one command of an installed muhat that has no extras: ``make wheel``."""

import subprocess
import sys

import numpy as np

import muhat as mh

X = np.random.default_rng(0).normal(size=(40, 3))
assert "site-packages" in mh.__file__, f"{mh.__file__} is not the installed wheel"
assert 0 <= mh.ShrunkKernelMean().fit(X).shrinkage_ <= 1
assert mh.mmd_test(X, X + 3, random_state=0).pvalue < 0.05
assert mh.compare(X, X + 3, random_state=0).differs
subprocess.run([sys.executable, "-m", "muhat", "--version"], check=True)
print("the wheel works")
