"""Benchmarks of accuracy in their smallest form: that they run, and print numbers."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
SMALLEST = {
    "accuracy.py": "--groups other --kernels RBF --sizes 10 --repetitions 2",
    "encoder.py": "libraries level timings --draws 2 --quick",
    "few_groups.py": "--draws 2 --counts 5",
    "group_distances.py": "simulated level --draws 2 --only kinds --tests 20",
    "groups.py": "--quick --names wine wdbc --part toy regression anomalies likeness error_bars --draws 1",
    "growth.py": "--quick --only ShrunkKernelMean KernelPCA(20) mmd_test DistributionRidge MeanSketch.update",
    "natural_groups.py": "--quick --only wdbc wine digits --part regression anomalies",
    "guide/adaptive.py": "--samples 2 --part points",
    "guide/error_bars.py": "--draws 3 --resamples 20",
    "guide/robust.py": "--draws 2",
    "guide/sketch_tests.py": "--draws 2",
    "guide/sketches.py": "--rows 1000",
    "monitor.py": "promises dependence speed --quick",
    "power.py": "--quick --only d=3 ring square",
    "robust.py": "--rows 30 --draws 2",
    "scale.py": "--rows 40_000 --engines loop",
}


@pytest.mark.parametrize("script", SMALLEST)
def test_it_runs(script):
    command = [sys.executable, str(BENCHMARKS / script), *SMALLEST[script].split()]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr  # 1: so few samples miss a target
    assert "Traceback" not in done.stderr
    assert re.search(r"\d\.\d", done.stdout)
    assert "nan" not in done.stdout
