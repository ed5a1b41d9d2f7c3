"""Pictures within a page: the same to the eye as what matplotlib wrote, and far smaller."""

import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from browser import Browser, require_chromium

from muhat.report.drawing import figure, svg
from muhat.report.inline_svg import inline_svg

SVG = "{http://www.w3.org/2000/svg}"
POINTS = 25
PAGE = """<!doctype html><meta charset="utf-8"><style>
body {{ margin: 0; color: #59616b }} svg {{ width: 1400px; height: auto; stroke-linejoin: round }}
text, tspan {{ font-family: sans-serif !important }}</style>{}"""
SEEN = 80  # of 255, as the mean of three by three pixels: edges move by less, and a lost mark makes more


@pytest.fixture(scope="module")
def given():
    """All that our pictures draw, and some of what they do not: bars, boxes, areas, faint dots, formulas."""
    rng = np.random.default_rng(0)
    x, y = np.arange(POINTS), rng.uniform(1, 100, POINTS)
    with figure(2, 2, width=9, height=6) as (drawn, axes):
        axes[0, 0].errorbar(x, y, 0.2 * y, marker="o", ms=3, capsize=2, label="a < b & c")
        axes[0, 0].set(yscale="log", xlabel="turned", ylabel=r"$x^2$")
        axes[0, 0].tick_params(axis="x", rotation=30)
        axes[0, 1].boxplot([y, y**1.2], flierprops={"marker": "."})
        axes[0, 1].axhline(40, ls="--", color="#6b7280")
        axes[1, 0].scatter(x, y, s=40, alpha=0.5, linewidths=0, color="#2563eb")
        axes[1, 0].fill_between(x, y, 50, where=y > 50, alpha=0.5, color="#d97706")
        axes[1, 0].set_xlim(3, 20)  # what lies outside is cut off
        axes[1, 1].barh(x, y, color="#059669")
        drawn.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center")
        return svg(drawn)


@pytest.fixture(scope="module")
def inlined(given):
    return str(inline_svg(given, "p1"))


def test_nothing_is_lost(given, inlined):
    before, after = ElementTree.fromstring(given), ElementTree.fromstring(inlined)
    words = sorted("".join(node.itertext()).split() for node in before.iter(f"{SVG}text"))
    assert sorted(" ".join(node.itertext()).split() for node in after.iter("text")) == words
    assert ["a", "<", "b", "&", "c"] in words
    rules = after.find("style").text
    carriers = set(re.findall(r"\.(c\d+)\{[^}]*marker:", rules))
    marked = [node.get("d") for node in after.iter("path") if node.get("class") in carriers]
    marks = sum(len(path.split()) // 2 for path in marked) + len(list(after.iter("use")))
    assert marks == len(list(before.iter(f"{SVG}use")))
    assert len(marked) > 5


def test_names_are_the_pictures_own_and_each_is_there(inlined):
    after = ElementTree.fromstring(inlined)
    ids = [node.get("id") for node in after.iter() if node.get("id")]
    assert len(set(ids)) == len(ids)
    assert all(name.startswith("p1-") for name in ids)
    assert set(re.findall(r'(?:url\(|href=")#([\w-]+)', inlined)) == set(ids)
    assert {node.get("class") for node in after.iter() if node.get("class")} - {"p1"} == set(
        re.findall(r"\.p1 \.(c\d+)\{", inlined)
    )
    assert "http" not in inlined


def test_small(given, inlined):
    assert len(inlined) < len(given) / 4
    assert not re.search(r"\d\.\d{3}", inlined)
    page = Path(__file__).parents[2] / "docs" / "reproduction" / "index.html"
    assert page.stat().st_size < 500_000


def difference(browser, folder, one, other):
    """Largest difference of two pictures on the screen, as the mean of three by three pixels."""
    from matplotlib.image import imread

    shots = []
    for text in (one, other):
        (folder / "page.html").write_text(PAGE.format(text), encoding="utf-8")
        browser.open(folder / "page.html", width=1400)
        browser.screenshot(folder / "page.png")
        shots.append(imread(folder / "page.png")[..., :3])
    assert shots[0].shape == shots[1].shape
    gap = np.abs(shots[0] - shots[1])
    windows = np.lib.stride_tricks.sliding_window_view(shots[0] - shots[1], (3, 3), axis=(0, 1))
    assert gap.max() > 0
    return 255 * np.abs(windows.mean(axis=(-2, -1))).max()


def test_the_same_to_the_eye(given, inlined, tmp_path):
    require_chromium()
    with Browser() as browser:
        assert difference(browser, tmp_path, given, inlined) < SEEN
        lost = re.sub(r'(d="M[\d.]+ [\d.]+) [\d.]+ [\d.]+( [\d. ]+" />)', r"\1\2", inlined, count=1)
        assert lost != inlined
        assert difference(browser, tmp_path, given, lost) > SEEN
