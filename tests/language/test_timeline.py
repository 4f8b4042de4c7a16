"""Checkpoints of a model against one set of topics: each figure is the probe's, and what appears is found."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import transformers

from tests.command import error_line, topicscope
from tests.language import tiny
from tests.language.samples import assignment
from topicscope import InputError
from topicscope.language import (
    Measurement,
    ModelPass,
    TimelineConfig,
    find_snapshots,
    load_model,
    probe_model,
    read_timeline,
    timeline,
    timeline_of,
    whole_words,
)
from topicscope.measure import Effect, Matched, Timeline

MEASUREMENT = Measurement(bootstrap=60, shuffles=0, random=False, cooccurrence=False)


@pytest.fixture(scope="module")
def snapshots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model whose embeddings become topics between steps 10 and 100, and stay."""
    home = tmp_path_factory.mktemp("snapshots")
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


def effect_at(found: Timeline, measure: str, step: int) -> Effect:
    return next(row.effect for row in found.rows if (row.measure, row.step) == (measure, step))


def test_every_step_is_what_a_probe_of_it_finds(snapshots: Path) -> None:
    models = find_snapshots([str(snapshots)])
    assert [step for step, _ in models] == [0, 10, 100, 1000]
    loaded = load_model(models[2][1])
    vocabulary = whole_words(loaded.tokenizer)
    a = assignment(vocabulary, several=False)
    found = timeline_of(models, tiny.TEXTS, a, vocabulary, MEASUREMENT)
    alone = probe_model(loaded, tiny.TEXTS, a, MEASUREMENT)
    for measure in ("cosine", "dot", "attention"):
        here, there = effect_at(found, measure, 100), alone.rows[0].effects[measure]
        assert there is not None
        assert here.difference == pytest.approx(there.difference, rel=1e-9)
        assert here.interval == pytest.approx(there.interval, rel=1e-9)
        if measure != "dot":
            matched: Matched | None = there.matched
            assert matched is not None
            equal = effect_at(found, f"{measure}_matched", 100)
            assert equal.difference == pytest.approx(matched.difference, rel=1e-9)
            assert equal.interval == pytest.approx(matched.interval, rel=1e-9)
    for layer in (0, 1):  # a layer is the mean of its heads
        heads = [h.effect.same for h in alone.heads if h.layer == layer]
        assert len(heads) == 4
        assert effect_at(found, f"attention.{layer}", 100).same == pytest.approx(np.mean(heads), rel=1e-9)


def test_what_appears_is_found_where_it_was_planted(snapshots: Path) -> None:
    models = find_snapshots([str(snapshots / f"step-{step:06d}") for step in (1000, 0, 100, 10)])  # in any order
    vocabulary = whole_words(load_model(models[0][1]).tokenizer)
    found = timeline_of(models, tiny.TEXTS, assignment(vocabulary, several=False), vocabulary, ModelPass(bootstrap=60))
    moment = next(m for m in found.moments if m.measure == "cosine")
    assert moment.appears == 100
    assert moment.half is not None
    assert moment.half_interval is not None
    low, high = moment.half_interval
    assert 10 < low <= moment.half <= high < 100
    assert "from step 100 on" in found.answer


def test_other_names_of_snapshots(snapshots: Path, tmp_path: Path) -> None:
    for step in (0, 100):
        (tmp_path / f"checkpoint-{step}").symlink_to(snapshots / f"step-{step:06d}")
    assert [step for step, _ in find_snapshots([str(tmp_path)])] == [0, 100]
    for name, steps in (("snapshots", (0, 10)), ("checkpoints", (0, 100))):
        run = tmp_path / f"run-of-{name}"
        (run / name).mkdir(parents=True)
        for step in steps:
            (run / name / f"step-{step}").symlink_to(snapshots / f"step-{step:06d}")
        assert [step for step, _ in find_snapshots([str(run)])] == list(steps)
    (tmp_path / "run-of-snapshots" / "checkpoints").mkdir()  # beside snapshots: states to resume from
    (tmp_path / "run-of-snapshots" / "checkpoints" / "step-7").symlink_to(snapshots / "step-000010")
    assert [step for step, _ in find_snapshots([str(tmp_path / "run-of-snapshots")])] == [0, 10]
    assert find_snapshots(["owner/name@step1000", "owner/name@step20"]) == [
        (20, "owner/name@step20"),
        (1000, "owner/name@step1000"),
    ]
    for names, said in (
        ([str(tmp_path / "checkpoint-0")], "at least two snapshots"),
        ([str(tmp_path / "none")], "no such folder"),
        ([str(snapshots), str(snapshots / "step-000010")], "step 10 is given more than once"),
        (["owner/name@main", "owner/name@step1"], "no step in its name"),
        ([str(snapshots / "step-000010"), str(tmp_path / "run-of-snapshots" / "x")], "no such folder"),
    ):
        with pytest.raises(InputError, match=said):
            find_snapshots(names)


def test_another_tokenizer_is_refused(snapshots: Path, tmp_path: Path) -> None:
    other = tiny.tokenizer("bpe")
    tiny.model("encoder", len(other)).float().save_pretrained(tmp_path / "step-000005")
    other.save_pretrained(tmp_path / "step-000005")
    models = find_snapshots([str(snapshots / "step-000000"), str(tmp_path / "step-000005")])
    vocabulary = whole_words(load_model(models[0][1]).tokenizer)
    with pytest.raises(InputError, match="different tokenizer"):
        timeline_of(models, tiny.TEXTS, assignment(vocabulary, several=False), vocabulary, MEASUREMENT)


def test_the_command(snapshots: Path, tmp_path: Path) -> None:
    corpus, given = tmp_path / "texts.txt", tmp_path / "topics.json"
    corpus.write_text("\n".join(text for text in tiny.TEXTS if text))
    given.write_text(json.dumps(tiny.TOPICS))
    out = tmp_path / "out"
    arguments = [str(snapshots), "--corpus", str(corpus), "--topics-from", str(given), "--bootstrap", "40"]
    done = topicscope("timeline", *arguments, "--out", str(out), "--json")
    printed = json.loads(done.stdout)
    assert next(m for m in printed["moments"] if m["measure"] == "cosine")["appears"] == 100
    assert {"cosine", "dot", "attention", "attention.0", "attention.1", "cosine_matched"} <= {
        row["measure"] for row in printed["timeline"]
    }
    assert "from step 100 on" in (out / "report.html").read_text()
    assert json.loads((out / "results.json").read_text()) == printed
    page = (out / "report.html").read_bytes()
    topicscope("report", str(out))
    assert (out / "report.html").read_bytes() == page
    config = TimelineConfig(str(snapshots), str(corpus), topics_from=str(given), bootstrap=40, device="cpu")
    made = timeline(config, tmp_path / "python")
    assert read_timeline(tmp_path / "python") == made == read_timeline(out)
    assert json.loads(json.dumps(made.as_dict())) == printed
    assert made.table().num_rows == len(made.rows) == 7 * 4
    for extra, said in (
        ([str(snapshots)], "no text is given"),
        ([], "snapshots is missing"),
        ([str(snapshots), "--corpus", str(corpus), "--threshold", "2"], "threshold = 2"),
    ):
        refused = topicscope("timeline", *extra, code=2)
        assert said in error_line(refused.stderr)


def test_a_revision_of_the_hub_is_asked_for(snapshots: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for the hub: the revision is a folder here."""
    asked = []
    for kind in (transformers.AutoConfig, transformers.AutoModel, transformers.AutoTokenizer):
        real = kind.from_pretrained

        def stand_in(name: str, *, revision: str = "main", real: Any = real, **options: Any) -> Any:
            if Path(name).is_dir():  # the library itself asks, for what it has found
                return real(name, **options)
            asked.append((name, revision, options["local_files_only"], options["trust_remote_code"]))
            return real(snapshots / f"step-{int(revision.removeprefix('step')):06d}", **options)

        monkeypatch.setattr(kind, "from_pretrained", stand_in)
    loaded = load_model("owner/name@step100")
    assert loaded.name == "owner/name@step100"
    assert asked == [("owner/name", "step100", False, False)] * 3
