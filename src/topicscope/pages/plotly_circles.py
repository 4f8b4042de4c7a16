"""Circles in a plane, as plotly draws them on the page."""

from topicscope.pages import plotly_parts as plotly
from topicscope.pages.layout import diameters, largest_first
from topicscope.pages.panels import Circles
from topicscope.pages.plotly_maps import BAR

HEIGHT, LETTERS = 520, 60


def circles_spec(circles: Circles) -> plotly.Spec:
    """`details` has what the page shows of a chosen circle: its name, the text, and things with a number each."""
    order, across = largest_first(circles), diameters(circles)
    trace: plotly.Spec = {
        "type": "scatter",
        "mode": "markers+text",
        "x": plotly.rounded([circles.x[i] for i in order]),
        "y": plotly.rounded([circles.y[i] for i in order]),
        "text": [plotly.text(circles.names[i]) for i in order],
        "textposition": "middle center",
        "textfont": {"size": 11},
        "marker": {
            "size": plotly.rounded([across[i] for i in order]),
            "opacity": 0.75,
            "line": {"color": "white", "width": 1},
            **colour(circles, order),
        },
        "customdata": [["<br>".join(plotly.broken(line, LETTERS) for line in circles.texts[i])] for i in order],
        "hovertemplate": "%{customdata[0]}<extra></extra>",
    }
    bare = {"showticklabels": False, "ticks": ""}
    axes = [plotly.axis(label) | bare for label in (circles.x_label, circles.y_label)]
    if circles.ends is not None:
        for axis, ends in zip(axes, (circles.ends[:2], circles.ends[2:]), strict=True):
            axis["range"] = list(ends)
    layout = plotly.layout(*axes) | {"showlegend": False}
    layout["margin"] |= {"r": 8}
    panel: plotly.Spec = {"data": [trace], "layout": layout, "height": HEIGHT}
    if circles.details:
        both = zip(circles.texts, circles.details, strict=True)
        panel["details"] = [[name, text[0], things] for name, (text, things) in zip(circles.names, both, strict=True)]
    return panel


def colour(circles: Circles, order: list[int]) -> plotly.Spec:
    if circles.colours is not None:
        return {"color": [circles.colours[i] for i in order]}
    bar = {**BAR, "title": {"text": plotly.text(circles.value_label), "side": "right"}}
    return {"color": plotly.rounded([circles.values[i] for i in order]), "colorscale": "Cividis", "colorbar": bar}
