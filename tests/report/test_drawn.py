"""Figures as SVG: what is drawn where, and that words in them stay words."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import plotly.graph_objects as go
import pytest

from core.report.svg import svg

NAME = "<b>a</b> & <script>"


def drawn(*traces: object, **layout: object) -> ET.Element:
    image = svg(go.Figure(traces, layout), 'a "chart"')
    assert image is not None
    return ET.fromstring(image)  # noqa: S314 - made here


def tags(image: ET.Element, tag: str) -> list[ET.Element]:
    return [one for one in image.iter() if one.tag == tag]


@pytest.mark.parametrize(
    ("trace", "tag", "count"),
    [
        (go.Scatter(x=[1, 2, 3], y=[1, None, 2], mode="markers"), "circle", 2),
        (go.Scatter(x=[1, 2], y=[1, 2], mode="markers", marker={"symbol": "diamond"}), "circle", 0),
        (go.Bar(x=[1, 2], y=["a", "b"], orientation="h"), "rect", 2),
        (go.Bar(x=["a", "b"], y=[1, -2]), "rect", 2),
    ],
)
def test_marks_and_bars_are_counted(trace: object, tag: str, count: int):
    assert len(tags(drawn(trace), tag)) == count


def test_a_logarithmic_axis_has_even_decades():
    image = drawn(go.Scatter(x=[1, 10, 100, 0], y=[1, 1, 1, 1], mode="markers"), xaxis={"type": "log"})
    left = [float(one.attrib["cx"]) for one in tags(image, "circle")]
    assert left[1] - left[0] == pytest.approx(left[2] - left[1], abs=0.2)
    assert len(left) == 3, "nothing stands at 0"


def test_stacked_bars_follow_one_another():
    traces = [go.Bar(x=[2], y=["a"], orientation="h"), go.Bar(x=[3], y=["a"], orientation="h")]
    first, second = tags(drawn(*traces, barmode="stack"), "rect")[:2]
    end = float(first.attrib["x"]) + float(first.attrib["width"])
    assert float(second.attrib["x"]) == pytest.approx(end, abs=0.2)


def test_words_are_words():
    image = drawn(
        go.Scatter(x=[1], y=[1], name=NAME),
        go.Scatter(x=[1], y=[2], name="other"),
        xaxis={"title": {"text": "&lt;i&gt; ms"}},
    )
    words = [one.text or "" for one in tags(image, "text")]
    assert any(re.match(r"a\s+&", word) for word in words)
    assert "<i> ms" in words
    assert image.attrib["aria-label"] == 'a "chart"'
    assert not tags(image, "script")


def test_what_is_not_drawn_here_is_no_image():
    assert svg(go.Figure(go.Heatmap(z=[[1]])), "") is None
    assert svg(go.Figure(), "") is None
