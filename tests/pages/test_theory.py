"""Theorems and landscapes, as data."""

import numpy as np
import pytest

from tests.pages import samples
from topicscope.pages import Heat, landscape_figure
from topicscope.pages.theory import landscape_sections, theorem_sections
from topicscope.theory import Convention, Landscape, Setting, ValueMatrix, attention_landscape, optimum, theorem1
from topicscope.world import Dirichlet, TopicModel


def test_a_landscape_marks_the_lowest_point_and_uniform_attention() -> None:
    axis = np.array([0.1, 1.0, 10.0])
    loss = np.array([[3.0, 2.0, 4.0], [5.0, 1.12345678, 6.0], [7.0, 8.0, 9.0]])
    grid = Landscape(alpha=axis, beta=2 * axis, loss=loss)
    figure = landscape_figure("figure7", "Landscapes", {"τ = 1": grid, "τ = 2": grid}, {"τ = 2": (0.01, 5.0)})
    first, second = samples.panels(figure, Heat)
    assert (figure.name, figure.title) == ("figure7", "Landscapes")
    assert (first.title, second.title) == ("τ = 1", "τ = 2")
    assert first.marks == [(2.0, 1.0, "lowest")]  # x is beta
    assert second.marks == [(5.0, 0.01, "lowest")]
    assert first.references == second.references == [(1.0, 1.0, "uniform")]
    assert (first.x, first.y, first.z[0]) == ([0.2, 2.0, 20.0], [0.1, 1.0, 10.0], [3.0, 2.0, 4.0])
    assert first.z[1][1] == 1.123457
    assert (first.log, first.contours > 0, first.z_label) == (True, True, "squared loss")
    assert (first.x_label, first.y_label) == ("β: attention to same word", "α: attention to same topic")
    (alone,) = samples.panels(landscape_figure("figure7", "Landscape", {"": grid}), Heat)
    assert alone.marks == first.marks
    (tending,) = samples.panels(landscape_figure("figure7", "Landscape", {"": grid}, {"": (0.0, 5.0)}), Heat)
    assert tending.marks == [(5.0, 0.1, "lowest, beyond the edge")]  # zero has no place on a logarithmic axis


@pytest.mark.parametrize("cap", [True, False])
def test_the_report_of_a_landscape_compares_the_best_attention_with_uniform(cap: bool) -> None:
    matrix: ValueMatrix = "diagonal" if cap else "blocks"
    convention: Convention = "paper" if cap else "exact"
    landscape = attention_landscape(Setting.of(), matrix, convention)
    assert landscape.stage.cap is cap
    (section,) = landscape_sections(landscape)
    best = landscape.stage.optimum
    (panel,) = samples.panels(section.figures[0], Heat)
    assert panel.marks == [(best.beta, best.alpha, "lowest")]
    rows = {row[0]: row[1:] for row in section.tables[0].rows}
    assert rows["uniform attention"] == ["1", "1", "1", f"{landscape.stage.uniform_loss:.6g}"]
    assert rows["best attention"] == [f"{value:.6g}" for value in (best.alpha, best.beta, best.gamma, best.loss)]
    alpha, beta, loss = landscape.grid.minimum
    gamma = landscape.stage.setting.gamma(alpha, beta)
    assert rows["lowest point of the grid"] == [f"{value:.6g}" for value in (alpha, beta, gamma, loss)]
    assert section.command.startswith(
        f"topicscope theory landscape --value-matrix {matrix} --convention {convention} --topics 10"
    )
    assert section.command.split()[-1] == ("--cap" if cap else "--no-cap")
    assert section.config["cap"] is cap


def test_a_theorem_is_its_matrix_and_its_numbers() -> None:
    theorem = theorem1(Setting.of(3, 4, 2))
    (section,) = theorem_sections(theorem)
    (figure,) = section.figures
    (heat,) = samples.panels(figure, Heat)
    assert heat.z == np.round(theorem.matrix(), 6).tolist()
    assert (heat.topics, heat.words_per_topic, figure.columns, figure.name) == (3, 4, 1, "theorem1")
    rows = {row[0]: row[1:] for row in section.tables[0].rows}
    assert rows == {entry.name: [f"{entry.value:.7g}", entry.meaning] for entry in theorem.entries()}
    assert section.command.startswith("topicscope theory theorem1 --topics 3 --words-per-topic 4")


@pytest.mark.parametrize(("topics", "words", "drawn"), [(40, 10, True), (2, 200, True), (3, 134, False)])
def test_large_matrices_are_not_drawn(topics: int, words: int, drawn: bool) -> None:
    (section,) = theorem_sections(theorem1(Setting.of(topics, words, 2)))
    assert bool(section.figures) is drawn  # 401 words at most, [MASK] among them


def test_an_optimum_shows_its_limit_and_its_modes() -> None:
    best = optimum(TopicModel(3, 2), Dirichlet(length=9))
    (section,) = best.sections()
    panels = [panel for panel in section.figures[0].panels if isinstance(panel, Heat)]
    assert [panel.title for panel in panels] == ["W*", "limit of long documents", "Theorem 2 for these topics"]
    assert np.array(panels[0].z) == pytest.approx(best.matrix(), abs=1e-6)
    assert len({(panel.low, panel.high) for panel in panels}) == 1  # one scale
    assert [row[0] for row in section.tables[0].rows] == [mode.name for mode in best.modes]
    many = optimum(TopicModel(100, 50), Dirichlet())
    large = many.sections()[0].figures[0]
    first = large.panels[0]
    assert isinstance(first, Heat)
    assert len(first.z) == 101  # ten words of ten topics stand for all
    assert (first.z[1][2], first.z[1][11]) == pytest.approx(many.matrix()[1, [2, 51]], abs=1e-6)
    assert "Of the 5,000 words the first 10 of 10 topics" in large.alt
    unlike = TopicModel(words_per_topic=[100, 200, 300])
    assert not optimum(unlike, Dirichlet()).sections()[0].figures
    never = optimum(TopicModel(3, 2), Dirichlet(length="infinite")).sections()[0].tables[0].rows[-1]
    assert never[-1] == "never learnt"
    assert "W*" in best._repr_html_()
