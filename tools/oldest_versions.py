"""The oldest versions that pyproject.toml allows, as constraints for pip: ``python tools/oldest_versions.py``."""

import re
import tomllib
from pathlib import Path

DECLARED = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = DECLARED["project"]


def lower_bounds() -> dict[str, str]:
    """Name of each dependency, of extras and of the build too, and the version that its lower bound names."""
    extras = PROJECT["optional-dependencies"].values()
    declared = [
        *PROJECT["dependencies"],
        *DECLARED["build-system"]["requires"],
        *(line for lines in extras for line in lines),
    ]
    found = {}
    for line in declared:
        match = re.fullmatch(r"([\w.-]+)(?:\[[\w,]+\])?>=([\w.]+)", line)
        if match:
            found[match[1]] = match[2]
    return found


OF_THAT_TIME = ("pyparsing<3.3",)
"""What the oldest versions need and do not say: later ones warn of names that matplotlib 3.9 uses."""


if __name__ == "__main__":
    for name, bound in lower_bounds().items():
        print(f"{name}=={bound}.*" if bound.count(".") < 2 else f"{name}=={bound}")
    print("\n".join(OF_THAT_TIME))
