"""The report: its files, what the page says, and how it behaves in a browser."""

import json
import re
from html.parser import HTMLParser

import pytest
from browser import Browser, require_chromium

from paper.claim import REASON, RULE, VERDICTS
from paper.experiment import PaperTable, Plan, Section
from paper.figure1 import EXPERIMENT
from paper.page import Picture, ReportTable
from paper.results_page import SYMBOLS, claims_text, render, write_report

CLAIMS = [
    ("figure1-shrinks", "S-KMSE and F-KMSE outperform KME for moderate λ.", "holds", "11 for, 0 against, of 12"),
    ("figure1-scale", "Both estimators depend on λ alike.", "holds in part", "S-KMSE 0.85 ± 0.03 at c = .01"),
    ("table2-order", "F-KMSE < S-KMSE on “small” & large bags", "does not hold", "2 for, 5 against, of 9"),
    ("table1-uci", "Shrinkage wins on all tables.", "cannot be checked", "not run: table1"),
]
ROWS = [
    ["wine", "0.95 ± 0.01", "12 %", 3.0],
    ["glass", "−1.50 ± 0.20", "100 %", None],
    ["sonar", "10.2 ± 1.0", "9 %", -20.25],
]


@pytest.fixture(scope="module")
def sections():
    rows = [row for setting in EXPERIMENT.cells(Plan(repetitions=3)) for row in EXPERIMENT.run(setting, None)]
    drawn = EXPERIMENT.section(rows)
    table = ReportTable("Accuracy by table", ["table", "KME", "improved", "difference"], ROWS)
    again = Picture(drawn.shown[0].svg, "The same picture twice", 'It says "no" to <b>markup</b>.')
    cells = [[("0.5432", "better"), ("0.6 <i>scenes</i>", "worse")]]
    paper = PaperTable("In the paper's layout", ("paper", "ours"), [("Linear", 1)], ["SMM"], [("KME", cells)])
    return {"figure1": drawn, "table2": Section([], [again, paper, table], (), ["Levels differ from the paper’s."])}


@pytest.fixture(scope="module")
def results(sections):
    claims = [
        {
            "id": name,
            "text": text,
            "where": "Section 5.1",
            "experiments": [name.split("-")[0]],
            "verdict": verdict,
            "number": f"number of {name}",
            "evidence": evidence,
            "note": "",
            "parts": [],
            "margins": {"1.5": "holds", "2": verdict, "3": verdict},
        }
        for name, text, verdict, evidence in CLAIMS
    ]
    table2 = {
        "title": "Table 2: learning on distributions",
        "protocol": ["Ten folds.", "Paired."],
        "summary": [CASE],
        "repetitions": 10,
        "seconds": 60.0,
    }
    figure1 = {
        "title": EXPERIMENT.title,
        "protocol": list(EXPERIMENT.protocol),
        "summary": sections["figure1"].summary,
        "repetitions": 3,
        "seconds": 0.5,
    }
    versions = {"python": "3.11.2", "muhat": "0.1.0", "numpy": "2.0.0", "scipy": "1.13.0", "scikit-learn": "1.6.0"}
    run = {"date": "2026-01-31", "cpu_seconds": 300, "processor": "A processor", "system": "Linux"}
    data = {"wine": {"rows": 178, "checksum": "0123456789ab", "original": True}}
    meta = {"seed": 7, "quick": True, "repetitions": 3, "rule": RULE, "reason": REASON, "versions": versions}
    meta |= {"run": run, "data": data}
    return {"claims": claims, "experiments": {"figure1": figure1, "table2": table2}, "meta": meta}


@pytest.fixture(scope="module")
def page(results, sections, tmp_path_factory):
    return write_report(tmp_path_factory.mktemp("report"), results, sections)


CASE = {
    "machine": "SMM",
    "data": "hep",
    "level2": "linear",
    "S": {"gain": 0.03, "error": 0.01},
    "F_theorem4": {"gain": -0.03, "error": 0.01},
    "F_loo": {"gain": 0.01, "error": None},
}


def test_the_conclusion_comes_first_then_the_rule_the_claims_and_the_experiments(page, results, sections):
    text = page.read_text(encoding="utf-8")
    places = ['id="summary"', 'class="rule"', 'class="tally"', 'id="claims"', '<section id="figure1"', 'id="table2"']
    assert sorted(places, key=text.index) == places
    assert "it is better than KME in 1 and worse in 1 of 2 comparisons" in text
    assert "A quick run has fewer repetitions" in text
    assert "A quick run" not in render({**results, "meta": {**results["meta"], "quick": False}}, sections)


def test_the_conclusion_says_nothing_of_what_was_not_run(results, sections):
    alone = {"figure1": results["experiments"]["figure1"]}
    assert 'id="summary"' not in render({**results, "experiments": alone}, {"figure1": sections["figure1"]})
    once = {**results["meta"], "repetitions": 1}  # nothing exceeds two standard errors that are not known
    assert 'id="summary"' not in render({**results, "meta": once}, sections)


def test_claims_that_were_not_run_are_counted_and_come_last_in_the_terminal(results, sections):
    first, *others = results["claims"]
    margins = dict.fromkeys(first["margins"], "not run")
    part = {**results, "claims": [{**first, "verdict": "not run", "margins": margins}, *others]}
    page, text = render(part, sections), claims_text(part, width=200)
    assert "3 of its 4 claims judged" in page
    assert "4 of its claims judged" in render(results, sections)
    assert re.findall(r'id="claim-([^"]+)"', page) == [claim["id"] for claim in others]
    assert "1 more claim rests on experiments that were not run" in page
    assert '<span class="count">1</span> <span class="verdict not-run">' in page
    assert "not-run" not in render(results, sections).partition("<body")[2]
    assert text.index("– not run: number of") > text.index("? cannot be checked")
    assert text.endswith("0 holds, 1 holds in part, 1 does not hold, 1 cannot be checked, 1 not run")


def test_counts_by_margin_and_the_claims_that_change(page):
    text = page.read_text(encoding="utf-8")
    table = text[text.index("How the counts depend on the margin") :].partition("</table>")[0]
    counts = [re.findall(r'number">(\d+)<', row) for row in re.findall(r"<tr>.*?</tr>", table, flags=re.S)[1:]]
    assert counts == [["4", "0", "0", "0"], ["1"] * 4, ["1"] * 4]
    changed = text[text.index("Verdicts that depend on the margin") :].partition("</ul>")[0]
    assert re.findall(r'href="#claim-([^"]+)"', changed) == [
        name for name, _, verdict, _ in CLAIMS if verdict != "holds"
    ]


def test_cells_of_the_papers_table_have_one_mark_each(page):
    text = page.read_text(encoding="utf-8")
    assert '<div class="printed"><strong>0.5432</strong></div>' in text
    assert '<div class="ours"><em>0.6 &lt;i&gt;scenes&lt;/i&gt;&nbsp;▲</em></div>' in text


def test_the_run_is_described(page):
    text = page.read_text(encoding="utf-8")
    for said in ("2026-01-31", "5 min of one core", "A processor", "0123456789ab", "3.11.2"):
        assert said in text


class Tags(HTMLParser):
    """Start tags with their attributes, in order."""

    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


@pytest.fixture(scope="module")
def tags(page):
    return Tags(page.read_text(encoding="utf-8")).found


# ------------------------------------------------------------------------------------------------------------- files


def test_writes_both_files_and_nothing_else(page, results):
    assert sorted(path.name for path in page.parent.iterdir()) == ["index.html", "results.json"]
    assert json.loads((page.parent / "results.json").read_text(encoding="utf-8"))["meta"] == results["meta"]


def test_equal_input_gives_equal_bytes(page, results, sections, tmp_path):
    again = write_report(tmp_path / "new" / "folder", results, sections)
    assert again.read_bytes() == page.read_bytes()
    assert (again.parent / "results.json").read_bytes() == (page.parent / "results.json").read_bytes()


# -------------------------------------------------------------------------------------------------------------- text


def test_no_tag_loads_anything(tags):
    loading = {"src", "srcset", "data", "poster", "action", "background"}
    assert not [
        (tag, attrs) for tag, attrs in tags if loading & set(attrs) or tag in ("link", "iframe", "base", "object")
    ]
    links = {attrs["href"] for _, attrs in tags if "href" in attrs} | {
        attrs["xlink:href"] for _, attrs in tags if "xlink:href" in attrs
    }
    assert all(link.startswith("#") or link == "results.json" for link in links)


def test_cells_and_headings_have_the_class_of_their_column(page):
    text = page.read_text(encoding="utf-8")
    table = text[text.index("Accuracy by table") :].partition("</table>")[0]
    rows = [re.findall(r"<(?:th|td)[^>]*>", row) for row in re.findall(r"<tr.*?</tr>", table, flags=re.DOTALL)]
    assert [len(row) for row in rows] == [4] * 4
    for row in rows:
        assert ["number" in cell for cell in row] == [False, True, True, True]


def test_ids_are_unique_and_every_link_has_its_target(page, tags):
    ids = [attrs["id"] for _, attrs in tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    text = page.read_text(encoding="utf-8")
    targets = re.findall(r'(?:href="|url\(|labelledby=")#?([^")]+)', text)
    assert len(targets) > 50
    assert set(targets) - {"results.json"} <= set(ids)


def test_headings_are_in_order_and_landmarks_are_there(tags):
    names = [tag for tag, _ in tags]
    assert [name for name in names if re.fullmatch("h[1-6]", name)] == ["h1", *["h2"] * 8]
    for landmark in ("header", "nav", "main", "footer"):
        assert names.count(landmark) == 1


def test_pictures_tell_their_finding(tags, sections):
    spoken = [attrs["aria-label"] for _, attrs in tags if attrs.get("role") == "img"]
    pictures = [item for each in sections.values() for item in (*each.shown, *each.folded) if isinstance(item, Picture)]
    assert spoken == [picture.finding for picture in pictures]


def test_values_of_the_run_are_text_not_markup(page):
    text = page.read_text(encoding="utf-8")
    assert "<b>markup" not in text
    assert "F-KMSE &lt; S-KMSE on “small” &amp; large bags" in text


def test_the_command_repeats_the_run(results, sections, page):
    assert "python -m paper --quick --seed 7 --repetitions 3</code>" in page.read_text(encoding="utf-8")
    full = {**results, "meta": {**results["meta"], "quick": False, "repetitions": None}}
    assert "python -m paper --data DIR --seed 7</code>" in render(full, sections)


def test_a_report_without_experiments_says_so(results):
    text = render({**results, "experiments": {}, "claims": []}, {})
    assert "0 experiments" in text
    assert "<figure" not in text


# ------------------------------------------------------------------------------------------------------------ browser


@pytest.fixture(scope="module")
def browser():
    require_chromium()
    with Browser() as opened:
        yield opened


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_opens_without_network_complaint_or_sideways_scrolling(browser, page, width):
    browser.open(page, width=width)
    assert browser.requests == [page.resolve().as_uri()]
    assert browser.complaints == []
    assert browser.evaluate("innerWidth") == width
    assert browser.evaluate("document.documentElement.scrollWidth") <= width


def test_the_helper_sees_requests_and_complaints(browser, tmp_path):
    (tmp_path / "bad.html").write_text(
        "<img src='missing.png'><p style='width: 999px'>x</p><script>nonsense()</script>"
    )
    browser.open(tmp_path / "bad.html", width=390)
    assert len(browser.requests) == 2
    assert len(browser.complaints) >= 2
    assert browser.evaluate("document.documentElement.scrollWidth") > 390


def column(browser, number):
    cells = f"[...document.querySelectorAll('#table2 .data tbody tr')].map(row => row.cells[{number}].textContent)"
    return browser.evaluate(cells)


@pytest.mark.parametrize(
    ("number", "ascending"),
    [
        (0, ["glass", "sonar", "wine"]),
        (1, ["−1.50 ± 0.20", "0.95 ± 0.01", "10.2 ± 1.0"]),
        (2, ["9 %", "12 %", "100 %"]),
        (3, ["−20.25", "3", "–"]),
    ],
)
def test_tables_are_sorted_from_the_keyboard(browser, page, number, ascending):
    browser.open(page)
    given = column(browser, number)
    head = f"document.querySelectorAll('#table2 .data thead th')[{number}]"
    browser.evaluate(f"{head}.querySelector('button').focus()")
    descending = ascending[::-1] if None not in (row[number] for row in ROWS) else ["3", "−20.25", "–"]
    for order, values in (("ascending", ascending), ("descending", descending), ("none", given)):
        browser.press("ENTER")
        assert browser.evaluate(f"{head}.getAttribute('aria-sort')") == order
        assert column(browser, number) == values


def test_claims_are_filtered_by_verdict_and_found_again_by_link(browser, page):
    browser.open(page)
    visible = (
        "[...document.querySelectorAll('.claims tbody tr')].filter(row => row.checkVisibility()).map(row => row.id)"
    )
    browser.evaluate("document.querySelector('.filter [data-verdict=does-not-hold]').click()")
    assert browser.evaluate(visible) == ["claim-table2-order"]
    assert browser.evaluate("document.querySelector('.shown').textContent") == "1 of 4 shown"
    followed = "new Promise(done => addEventListener('hashchange', () => setTimeout(done)))"
    browser.evaluate(f"location.hash = 'claim-table1-uci'; {followed}")
    assert browser.evaluate(visible)[-1] == "claim-table1-uci"
    browser.evaluate("document.querySelector('.filter button').click()")
    assert browser.evaluate(visible) == [f"claim-{name}" for name, *_ in CLAIMS]


def test_the_first_key_offers_to_skip_to_the_content(browser, page):
    browser.open(page)
    browser.press("TAB")
    assert browser.evaluate("document.activeElement.className") == "skip"
    assert browser.evaluate("document.activeElement.getBoundingClientRect().top") >= 0


CONTRAST = """
(() => {
  const light = (colour) => {
    const parts = colour.match(/[\\d.]+/g).slice(0, 3).map(v => v / 255);
    const linear = parts.map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
    return .2126 * linear[0] + .7152 * linear[1] + .0722 * linear[2];
  };
  const behind = (node) => {
    for (; node; node = node.parentElement) {
      const colour = getComputedStyle(node).backgroundColor;
      if (colour !== 'rgba(0, 0, 0, 0)') return colour;
    }
  };
  const names = 'p, a, h1, h2, td, th, dt, dd, li, button, figcaption, .symbol, .verdict, .count, svg text';
  const texts = [...document.querySelectorAll(names)];
  return texts.filter(node => node.offsetHeight !== 0).map(node => {
    const style = getComputedStyle(node);
    const [a, b] = [light(node.closest('svg') ? style.fill : style.color), light(behind(node))].sort((x, y) => y - x);
    return [(a + .05) / (b + .05), node.className + ' ' + node.textContent.trim().slice(0, 40)];
  }).sort((x, y) => x[0] - y[0])[0];
})()
"""


@pytest.mark.parametrize("dark", [False, True])
def test_all_text_is_legible(browser, page, dark):
    browser.open(page, dark=dark)
    ratio, text = browser.evaluate(CONTRAST)
    assert ratio >= 4.5, text


def test_paper_shows_the_protocol_and_no_controls(browser, page):
    browser.open(page)
    protocol = "document.querySelector('.protocol p').checkVisibility({contentVisibilityAuto: true})"
    assert not browser.evaluate(protocol)
    browser.evaluate("dispatchEvent(new Event('beforeprint'))")
    browser.emulate("print")
    assert browser.evaluate(protocol)
    assert (
        browser.evaluate(
            "document.querySelector('.contents').offsetHeight + document.querySelector('.filter').offsetHeight"
        )
        == 0
    )


# ----------------------------------------------------------------------------------------------------------- terminal


@pytest.mark.parametrize("width", [30, 79, 80, 120, 200])
def test_claims_fit_the_terminal_and_lose_no_word(results, width):
    text = claims_text(results, width=width)
    assert max(map(len, text.splitlines())) <= width
    for name, claim, verdict, evidence in CLAIMS:
        assert f"{SYMBOLS[verdict]} {verdict}" in text
        assert set(f"{claim} {evidence}".split()) <= set(text.split()), name
    assert " ".join(text.split()).endswith(", ".join(f"1 {verdict}" for verdict in VERDICTS[:-1]))


def test_no_claims_give_a_table_without_rows(results):
    assert claims_text({**results, "claims": []}, width=60).strip().startswith("0 holds")
