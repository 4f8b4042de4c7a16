"""The recipes of docs/architecture.md that end in a command: a measure on language models, and a target of export."""

import csv
import json
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from tests.calling import TINY, topicscope
from tests.language.samples import corpus_file, model_folder
from topicscope import read
from topicscope.exporting import TARGETS
from topicscope.ground import Progress, Result, files
from topicscope.language import load_model
from topicscope.language.probing import MEASURES


def test_a_measure_is_in_the_results_the_table_the_csv_and_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(MEASURES, "signs", np.sign)
    model, corpus, out = model_folder(tmp_path), corpus_file(tmp_path), tmp_path / "out"
    words = {"food": ["bread", "butter", "cheese"], "sea": ["boat", "coral", "beach"]}
    (tmp_path / "topics.json").write_text(json.dumps(words))
    few = ["--documents", "20", "--bootstrap", "20", "--shuffles", "20", "--show-documents", "0"]
    off = ["--no-random", "--no-states", "--no-ablation"]
    given = ["--corpus", str(corpus), "--topics-from", str(tmp_path / "topics.json"), *few, *off, "--out", str(out)]
    topicscope("probe", str(model), *given)
    loaded = load_model(model)
    rows = loaded.model.get_input_embeddings().weight.detach().numpy()
    tokens = {word: loaded.tokenizer.convert_tokens_to_ids(word) for pair in words.values() for word in pair}
    vectors = {word: np.sign(rows[token]) for word, token in tokens.items()}
    same = np.mean([vectors[one] @ vectors[two] for topic in words.values() for one, two in combinations(topic, 2)])
    different = np.mean([vectors[one] @ vectors[two] for one in words["food"] for two in words["sea"]])
    found = read(out)
    effect = found.rows[0].effects["signs"]
    assert abs(effect.difference) > 0.1
    assert (effect.same, effect.different) == pytest.approx((same, different))
    assert json.loads((out / "results.json").read_text())["rows"][0]["signs"]["difference"] == effect.difference
    assert effect.difference in [row["difference"] for row in found.table().to_pylist() if row["measure"] == "signs"]
    with (out / "effects.csv").open() as stream:
        assert [float(row["same"]) for row in csv.DictReader(stream) if row["measure"] == "signs"] == [effect.same]
    cells = "".join(f'<td class="number">{number:.4g}</td>' for number in (effect.same, effect.different))
    assert f"<td>signs</td>{cells}" in (out / "report.html").read_text()


def test_a_target_is_one_of_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def to_lines(
        result: Result, source: Path, place: Path, model: str | None, progress: Progress
    ) -> tuple[list[str], list[str]]:
        files.write(place, "\n".join(result.summary()).encode())
        return [place.name], ["One line per sentence."]

    monkeypatch.setitem(TARGETS, "lines", (to_lines, ".txt"))
    run = tmp_path / "run"
    topicscope("train", *TINY, "--no-floors", "--out", str(run))
    shown = topicscope("export", str(run), "--to", "lines").stdout
    assert (tmp_path / "run.txt").read_text().splitlines() == read(run).summary()
    assert str(tmp_path / "run.txt") in shown
    assert "One line per sentence." in shown
    assert "did you mean 'lines'" in topicscope("export", str(run), "--to", "line", code=2).stderr
