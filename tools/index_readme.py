"""README as a package index shows it, where links and pictures of a clone lead nowhere: the build takes it from here.

With a ``Source`` among the ``urls`` of pyproject.toml links lead there. Without one they become names of files, which
the source distribution has.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

README = Path(__file__).parents[1] / "README.md"


def for_package_index(text: str, source: str | None) -> str:
    """README without comments, and with links to ``source`` or with names of files in their place."""
    text = re.sub(r"<!--.*?-->", "", text)
    if source is None:
        text = re.sub(r"<img .*?><br>\n\*.*?\*\n\n", "", text, flags=re.DOTALL)  # the picture and what it shows
    else:
        text = text.replace('<img src="', f'<img src="{source}/raw/main/')
    return re.sub(
        r"\[([^\]]+)\]\((?!https?:)(.+?)\)", r"\1 (\2)" if source is None else rf"[\1]({source}/blob/main/\2)", text
    )


def get_metadata_hook() -> type:
    """What hatchling calls; it is there when the package is built."""
    from hatchling.metadata.plugin.interface import MetadataHookInterface

    class IndexReadme(MetadataHookInterface):
        def update(self, metadata: dict[str, Any]) -> None:
            text = for_package_index(README.read_text(encoding="utf-8"), metadata.get("urls", {}).get("Source"))
            metadata["readme"] = {"content-type": "text/markdown", "text": text}

    return IndexReadme
