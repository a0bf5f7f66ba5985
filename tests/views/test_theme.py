import plotly.graph_objects as go
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.views import theme


@given(st.lists(st.text(), unique=True, max_size=len(theme.OKABE_ITO)))
def test_a_handful_of_names_get_distinct_colours(names: list[str]):
    colours = theme.colours_for(names)
    assert list(colours) == names
    assert len(set(colours.values())) == len(names)
    assert set(colours.values()) <= set(theme.OKABE_ITO)


def test_a_name_keeps_its_colour_wherever_it_is_alone_or_first():
    for name in ("BM25, K = 20", "a", ""):
        assert theme.colours_for([name])[name] == theme.colours_for([name, "b", "c"])[name]
        assert theme.colours_for([name])[name] == theme.colour_of(name)


def test_more_names_than_colours_share_them():
    names = [f"stack {number}" for number in range(30)]
    assert set(theme.colours_for(names)) == set(names)


def test_a_figure_names_its_axes_with_hostile_names_escaped():
    fig = theme.figure([go.Bar(x=[1], y=[1])], x="<a href='http://e'>x</a>", y="latency (ms)", legend=False)
    assert fig.layout.xaxis.title.text == "&lt;a href='http://e'&gt;x&lt;/a&gt;"
    assert fig.layout.yaxis.title.text == "latency (ms)"
    assert not fig.layout.showlegend
    assert len(fig.data) == 1


@pytest.mark.parametrize("name", ["pareto", "curves"])
def test_a_chart_saves_itself_under_its_name(name: str):
    config = theme.chart_config(name)
    assert config["toImageButtonOptions"] == {"format": "svg", "filename": name}
    assert config["displaylogo"] is False
    assert config["showSendToCloud"] is False


def test_a_long_title_of_an_axis_is_broken_and_stands_off_the_ticks() -> None:
    titles = ("ms", "K = 20: " + "words " * 8, "K = 20: " + "words " * 12)
    short, long, longer = (theme.layout(x=words, y=words) for words in titles)
    assert (short["yaxis"]["title"], short["xaxis"]["title"]) == ({"text": "ms"}, {"text": "ms"})
    up, along = (long[axis]["title"]["text"].split("<br>") for axis in ("yaxis", "xaxis"))
    assert (len(up), len(along), long["yaxis"]["title"]["standoff"]) == (2, 2, 22)
    assert up[0].startswith("K\u00a0=\u00a020: ")
    # a third line would lie over the ticks: the explanation is left out
    assert longer["yaxis"]["title"] == {"text": "K\u00a0=\u00a020"}
    assert longer["xaxis"]["title"]["text"].count("<br>") == 2
