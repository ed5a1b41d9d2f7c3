"""Every example runs, says something, and leaves a picture."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

NEEDS = {"dask_cluster": "distributed"}
EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


@pytest.mark.parametrize("example", EXAMPLES, ids=[path.stem for path in EXAMPLES])
def test_example(example, tmp_path):
    if example.stem in NEEDS:
        pytest.importorskip(NEEDS[example.stem])
    command = [sys.executable, "-W", "ignore", str(example), "--quick", "--out", str(tmp_path)]
    environment = {**os.environ, "MPLBACKEND": "Agg"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) > 3
    picture = tmp_path / f"{example.stem}.png"
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size > 10_000
