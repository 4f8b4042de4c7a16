"""Probes, timelines, topics and word maps show themselves: sentences, tables, figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.language import tiny
from tests.language.samples import THETA, assert_same, texts
from topicscope.ground import Result, open_folder
from topicscope.language import Measurement, checked, fit_topics, probe_model, read_words, whole_words, word_map
from topicscope.language.word_maps import WORDS
from topicscope.measure import Effect, Timeline


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    tokenizer = tiny.tokenizer("wordpiece")
    loaded = checked("tiny", tiny.model("encoder", len(tokenizer)).float(), tokenizer)
    topics = fit_topics(texts(), whole_words(tokenizer), 4, iterations=20)
    measurement = Measurement(thresholds=[THETA, 2 * THETA], bootstrap=20, shuffles=20)
    effect = Effect(same=2.0, different=1.0, difference=1.0, ratio=2.0, interval=(0.5, 1.5), resamples=np.ones(4))
    return {
        "topics": topics,
        "probe": probe_model(loaded, texts(20, 1), topics, measurement),
        "timeline": Timeline.of({"cosine": {0: effect, 10: effect}, "attention.0": {0: effect, 10: effect}}),
        "words": word_map(loaded, [["bread", "butter"], ["judge", "court"]]),
    }


@pytest.mark.parametrize(
    ("kind", "sections", "figures", "rows"),
    [("topics", 2, 2, 4), ("probe", 9, 6, 20), ("timeline", 1, 1, 4), ("words", 1, 1, 4)],
)
def test_results_show_themselves(results: dict[str, Any], kind: str, sections: int, figures: int, rows: int) -> None:
    result: Result = results[kind]
    assert result.kind == kind
    parts = result.sections()
    assert len(parts) == sections
    assert sum(len(part.figures) for part in parts) == figures
    assert all(len(row) == len(table.columns) for part in parts for table in part.tables for row in table.rows)
    assert result.table().num_rows == rows
    html = result._repr_html_()
    assert "<img" in html
    assert result.summary()[-1].replace("&", "&amp;").replace("'", "&#39;") in html
    assert len(result.plot().axes) >= 1
    assert len(repr(result)) < 100


def test_the_figures_have_the_numbers_of_the_results(results: dict[str, Any]) -> None:
    probe = results["probe"]
    _, ratios, chance, heads, topics, cooccurrence, states, ablation, documents = probe.sections()
    assert [row[2] for row in ablation.tables[0].rows] == ["off", "off"]  # the model has no output head
    panel = ratios.figures[0].panels[0]
    assert panel.title == "cosine"
    expected = [row.cosine.ratio for row in probe.rows if row.variant == "trained" and row.cosine.ratio is not None]
    assert [y for series in panel.series for y in series.y] == expected
    heat = heads.figures[0].panels[0]
    first = next(head for head in probe.heads if (head.layer, head.head) == (1, 2))
    assert heat.z[1][2] == pytest.approx(first.effect.difference)
    tight = [topic for topic in probe.topics if topic.threshold == THETA]
    assert topics.figures[0].panels[0].series[0].y == sorted((topic.cosine for topic in tight), reverse=True)
    assert len(cooccurrence.tables[0].rows) == 2
    layers = [row for row in probe.states if row.variant == "trained" and row.threshold == probe.states[-1].threshold]
    curves = states.figures[0].panels[0].series
    assert curves[0].y == [row.raw.difference for row in layers]
    assert len(states.tables[0].rows) == len(layers) == 3
    assert "With 20 shuffles p cannot be below 0.048; of attention and hidden states, with 19, not" in chance.note
    contrasts = [row.contrast for row in probe.documents if row.contrast is not None]
    assert documents.figures[0].panels[0].series[0].y == sorted(contrasts)
    assert [len(text.pieces) for text in documents.texts] == [len(one.pieces) for one in probe.shown]
    assert results["timeline"].sections()[0].figures[0].panels[0].series[0].y == [1.0, 1.0]
    assert results["words"].sections()[0].tables[0].rows[0][1] == "1.00"


def test_words_are_read_back_as_they_were(results: dict[str, Any], tmp_path: Path) -> None:
    with open_folder(tmp_path / "words", WORDS, {}) as folder:
        results["words"].write(folder)
    assert_same(read_words(tmp_path / "words"), results["words"])
