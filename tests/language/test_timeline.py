"""Checkpoints of a model against one set of topics: each figure is the probe's, and what appears is found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import transformers

from tests.command import topicscope
from tests.language import tiny
from tests.language.test_attention import assignment
from topicscope.figures.timelines import later, moments, sentence
from topicscope.ground.errors import InputError
from topicscope.language import Settings, load_model, probe_model, whole_words
from topicscope.language.timelines import find_checkpoints, timeline

SETTINGS = Settings(bootstrap=60, shuffles=0, attention_shuffles=0, random=False, cooccurrence=False)


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model whose embeddings become topics between steps 10 and 100, and stay."""
    home = tmp_path_factory.mktemp("checkpoints")
    tokenizer = tiny.tokenizer("wordpiece")
    model = tiny.model("encoder", len(tokenizer)).float()
    a = assignment(whole_words(tokenizer), several=False)
    rng = np.random.default_rng(0)
    centre, table, noise = (
        rng.normal(size=(4, 16)),
        model.get_input_embeddings().weight.data,
        rng.normal(size=(len(a.token), 16)),
    )
    for step, share in ((0, 0.0), (10, 0.0), (100, 1.5), (1000, 1.5)):
        for word, topic in zip(a.membership.word, a.membership.topic, strict=True):
            table[a.token[word]] = table.new_tensor(share * centre[topic] + noise[word])
        model.save_pretrained(home / f"step-{step:06d}")
        tokenizer.save_pretrained(home / f"step-{step:06d}")
    return home


def test_every_step_is_what_a_probe_of_it_finds(checkpoints: Path) -> None:
    found_at = find_checkpoints([str(checkpoints)])
    assert [step for step, _ in found_at] == [0, 10, 100, 1000]
    loaded = load_model(found_at[2][1])
    vocabulary = whole_words(loaded.tokenizer)
    a = assignment(vocabulary, several=False)
    found = timeline(found_at, tiny.TEXTS, a, vocabulary, SETTINGS)
    alone = probe_model(loaded, vocabulary, tiny.TEXTS, a, SETTINGS)
    row = alone.rows[0]
    for measure in ("cosine", "dot", "attention"):
        here = found[measure][100]
        assert here is not None
        assert here.difference == pytest.approx(row[measure]["difference"], rel=1e-9)
        assert here.interval == pytest.approx(row[measure]["interval"], rel=1e-9)
    for measure in ("cosine", "attention"):
        matched = found[f"{measure}_matched"][100]
        assert matched is not None
        assert matched.difference == pytest.approx(row[measure]["matched"]["difference"], rel=1e-9)
        assert matched.interval == pytest.approx(row[measure]["matched"]["interval"], rel=1e-9)
    for layer in (0, 1):  # a layer is the mean of its heads
        here = found[f"attention.{layer}"][100]
        heads = [h["same"] for h in alone.heads if h["layer"] == layer]
        assert here is not None
        assert len(heads) == 4
        assert here.same == pytest.approx(np.mean(heads), rel=1e-9)


def test_what_appears_is_found_where_it_was_planted(checkpoints: Path) -> None:
    found_at = find_checkpoints([str(checkpoints / f"step-{step:06d}") for step in (1000, 0, 100, 10)])  # in any order
    vocabulary = whole_words(load_model(found_at[0][1]).tokenizer)
    found = timeline(found_at, tiny.TEXTS, assignment(vocabulary, several=False), vocabulary, SETTINGS)
    said = {m["measure"]: m for m in moments(found)}
    assert said["cosine"]["appears"] == 100
    assert 10 < said["cosine"]["half"] < 100
    low, high = said["cosine"]["half_interval"]
    assert 10 < low <= said["cosine"]["half"] <= high < 100
    assert "from step 100 on" in sentence(found)
    swapped: dict[str, dict[int, Any]] = {
        "cosine": found["cosine"],
        "attention": {10 * step: effect for step, effect in found["cosine"].items()},
    }
    order = later(swapped, "cosine", "attention")
    assert order is not None
    assert order["ratio"] == pytest.approx(10)
    assert order["interval"] == pytest.approx((10, 10))
    assert "attention is later (its half-way step is 10 times" in sentence(swapped)


def test_other_names_of_checkpoints(checkpoints: Path, tmp_path: Path) -> None:
    for step in (0, 100):
        (tmp_path / f"checkpoint-{step}").symlink_to(checkpoints / f"step-{step:06d}")
    assert [step for step, _ in find_checkpoints([str(tmp_path)])] == [0, 100]
    assert find_checkpoints(["owner/name@step1000", "owner/name@step20"]) == [
        (20, "owner/name@step20"),
        (1000, "owner/name@step1000"),
    ]
    for names, said in (
        ([str(tmp_path / "checkpoint-0")], "at least two checkpoints"),
        ([str(tmp_path / "none")], "no such folder"),
        ([str(checkpoints), str(checkpoints / "step-000010")], "step 10 is there more than once"),
        (["owner/name@main", "owner/name@step1"], "no step in its name"),
    ):
        with pytest.raises(InputError, match=said):
            find_checkpoints(names)


def test_another_tokenizer_is_refused(checkpoints: Path, tmp_path: Path) -> None:
    other = tiny.tokenizer("bpe")
    tiny.model("encoder", len(other)).float().save_pretrained(tmp_path / "step-000005")
    other.save_pretrained(tmp_path / "step-000005")
    found_at = find_checkpoints([str(checkpoints / "step-000000"), str(tmp_path / "step-000005")])
    vocabulary = whole_words(load_model(found_at[0][1]).tokenizer)
    with pytest.raises(InputError, match="another tokenizer"):
        timeline(found_at, tiny.TEXTS, assignment(vocabulary, several=False), vocabulary, SETTINGS)


def test_the_command(checkpoints: Path, tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text("\n".join(text for text in tiny.TEXTS if text))
    (tmp_path / "topics.json").write_text(json.dumps(tiny.TOPICS))
    arguments = [
        "probe",
        "--checkpoints",
        str(checkpoints),
        "--corpus",
        str(tmp_path / "texts.txt"),
        "--topics",
        str(tmp_path / "topics.json"),
    ]
    arguments += ["--bootstrap", "40"]
    done = topicscope(*arguments, "--out", str(tmp_path / "out"), "--json")
    found = json.loads(done.stdout)
    assert next(m for m in found["moments"] if m["measure"] == "cosine")["appears"] == 100
    assert {"cosine", "dot", "attention", "attention.0", "attention.1", "cosine_matched"} <= {
        row["measure"] for row in found["timeline"]
    }
    page = (tmp_path / "out" / "report.html").read_text()
    assert "from step 100 on" in page
    assert json.loads((tmp_path / "out" / "results.json").read_text()) == found
    for extra, said in (
        (["some/model", *arguments[1:]], "takes no models beside it"),
        (["--checkpoints", str(checkpoints)], "no text is given"),
        ([], "no model is given"),
    ):
        refused = topicscope("probe", *extra, code=2)
        assert said in refused.stderr
        assert refused.stderr.count("\n") == 1


def test_a_revision_of_the_hub_is_asked_for(checkpoints: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for the hub: the revision is a folder here."""
    asked = []
    for kind in (transformers.AutoModel, transformers.AutoTokenizer):
        real = kind.from_pretrained

        def stand_in(name: str, *, revision: str, real: Any = real, **options: Any) -> Any:
            asked.append((name, revision, options["local_files_only"], options["trust_remote_code"]))
            return real(checkpoints / f"step-{int(revision.removeprefix('step')):06d}", **options)

        monkeypatch.setattr(kind, "from_pretrained", stand_in)
    loaded = load_model("owner/name@step100")
    assert loaded.name == "owner/name@step100"
    assert asked == [("owner/name", "step100", False, False)] * 2
