"""README's examples in an environment that its own install line has made: ``make readme``.

``python tools/readme.py ENVIRONMENT/bin/python`` installs what README says and nothing else, and runs README there.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

README = Path(__file__).parents[1] / "README.md"
RUN = """
import doctest, sys
flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
found = doctest.testfile(sys.argv[1], module_relative=False, optionflags=flags, encoding="utf-8")
print(f"{found.attempted} lines of README ran, {found.failed} failed")
sys.exit(found.failed > 0)
"""


def commands() -> list[str]:
    """The lines of README's first block of shell commands, without comments."""
    block = re.search(r"```sh\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert block is not None, "README has no block of shell commands"
    return [line.partition("#")[0].strip() for line in block[1].splitlines()]


def requirement() -> str:
    """What README installs, such as ``.[plot,files]``."""
    (found,) = (match[1] for line in commands() if (match := re.fullmatch(r'pip install "(.+)"', line)))
    return found


def main(python: str) -> int:
    """Install into the environment, and run README's examples in it, in an empty folder."""
    python = str(Path(python).absolute())
    pip = [sys.executable, "-m", "pip", "-qq", "--no-input", "--python", python, "install", "--progress-bar", "off"]
    subprocess.run([*pip, requirement()], cwd=README.parent, check=True)
    with TemporaryDirectory() as folder:
        return subprocess.run([python, "-c", RUN, str(README)], cwd=folder).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
