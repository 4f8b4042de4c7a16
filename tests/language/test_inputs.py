"""What a config names: where models, snapshots and corpora are, and what is refused."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.language.samples import corpus_file
from topicscope import InputError
from topicscope.language import (
    ProbeConfig,
    TimelineConfig,
    TopicsConfig,
    WordsConfig,
    check_inputs,
    find_snapshots,
    probe_point,
)
from topicscope.language.inputs import Place, check_model, model_place

NOTHING = {".json": b"{}", ".safetensors": (2).to_bytes(8, "little") + b"{}"}


def model_at(folder: Path, *names: str) -> str:
    """A folder with files of nothing: enough to be found."""
    folder.mkdir(parents=True)
    for name in names or ("config.json", "model.safetensors"):
        (folder / name).write_bytes(NOTHING.get(Path(name).suffix, b""))
    return str(folder)


@pytest.mark.parametrize(
    ("name", "revision"), [("bert-base-uncased", ""), ("owner/name", ""), ("owner/name", "step1000"), ("name", "v1.0")]
)
def test_names_of_the_hub(name: str, revision: str) -> None:
    given, place = f"{name}@{revision}" if revision else name, Place(name, local=False, revision=revision or "main")
    assert model_place(given) == place == check_model(given)


@pytest.mark.parametrize("name", ["a/b/c", "no model", "@step1", "/nowhere", "owner/name@"])
def test_names_that_the_hub_cannot_have(name: str) -> None:
    with pytest.raises(InputError, match="no such model"):
        model_place(name)


def test_names_that_are_too_long_are_one_line() -> None:
    for config in (
        WordsConfig("m" * 300, [["a", "b"]]),
        TimelineConfig(["m" * 300, "a@step2"], "x.txt"),
        ProbeConfig("bert", "x" * 300),
    ):
        with pytest.raises(InputError, match=r"cannot be read: File name too long|no such corpus") as caught:
            check_inputs(config)
        assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match="cannot be read: File name too long"):
        model_place("m" * 5000)
    with pytest.raises(InputError, match="is a file"):
        model_place(__file__)


def test_a_run_of_pretraining_holds_its_model(tmp_path: Path) -> None:
    inner = model_at(tmp_path / "run" / "model")
    assert model_place(tmp_path / "run") == Place(inner, local=True)
    (tmp_path / "run" / "config.json").write_text("{}")  # then it is a model itself
    assert model_place(tmp_path / "run") == Place(str(tmp_path / "run"), local=True)
    assert model_place(tmp_path) == Place(str(tmp_path), local=True)
    with pytest.raises(InputError, match=r"has no config\.json"):
        check_model(tmp_path)
    with pytest.raises(InputError, match=r"has no weights \(model\.safetensors\)"):
        check_model(tmp_path / "run")
    (tmp_path / "run" / "weights.pt").touch()
    with pytest.raises(InputError, match=r"only as weights\.pt, a format that can run code"):
        check_model(tmp_path / "run")


def test_snapshots_are_found_by_their_steps(tmp_path: Path) -> None:
    for name in ("step-10", "checkpoint_7", "global_step100", "iter3", "other", "step-5"):
        model_at(tmp_path / "run" / name, "README.md" if name == "step-5" else "config.json")
    assert [step for step, _ in find_snapshots([str(tmp_path / "run")])] == [3, 7, 10, 100]
    first, second = model_at(tmp_path / "step-1" / "step-2-of-step-30"), model_at(tmp_path / "STEP-4")
    assert find_snapshots([first, second]) == [(4, second), (30, first)]


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["{here}/runs"], "holds several runs; name one of them, for example {here}/runs/run-000"),
        (["{here}/empty"], "holds no snapshots"),
        (["{here}/model", "{here}/step-1"], "{here}/model: no step in its name"),
        (["owner/name", "owner/name@step1"], "owner/name: no such folder, and no step in its name"),
        (["{here}/step-1"], "at least two snapshots; there is 1"),
        (["{here}/step-1", "a/b@step1"], "step 1 is given more than once"),
        (["{here}/nothing"], "no such folder: {here}/nothing"),
    ],
)
def test_what_is_no_timeline(tmp_path: Path, names: list[str], said: str) -> None:
    (tmp_path / "runs" / "run-000").mkdir(parents=True)
    (tmp_path / "empty").mkdir()
    model_at(tmp_path / "model")
    model_at(tmp_path / "step-1")
    with pytest.raises(InputError) as caught:
        find_snapshots([name.format(here=tmp_path) for name in names])
    assert said.format(here=tmp_path) in str(caught.value)


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (ProbeConfig("{model}", "{text}"), None),
        (ProbeConfig("bert", "{text}"), None),
        (ProbeConfig(["{model}", "{empty}"], "{text}"), r"no config\.json"),
        (ProbeConfig("bert", "{blank}"), "has no text"),
        (ProbeConfig("bert", "{text}", stop_words="{empty}/x"), "one word per line"),
        (ProbeConfig("bert", "{text}", topics_from="{empty}/x"), "does not exist"),
        (ProbeConfig("bert", "{text}", topics_from="{words}", topics=50), r"topics = 50: no effect with topics"),
        (ProbeConfig("bert", "{text}", topics_from="{words}", thresholds=[0.1]), r"thresholds = 0\.1: no effect"),
        (ProbeConfig("bert", "{text}", topics_from="{words}"), None),
        (ProbeConfig.of(ProbeConfig.QUICK, models="bert", corpus="{text}", topics_from="{words}"), None),
        (ProbeConfig("bert", "{lines}", label_field="subject", topics=50), r"topics = 50: no effect with the labels"),
        (ProbeConfig("bert", "{lines}", label_field="subject", thresholds=[0.1]), None),
        (probe_point({"models": "bert", "corpus": "{text}", "topics_from": "{words}"}), None),
        (TimelineConfig(["a@step1", "a@step2"], "{text}", topics_from="{words}", threshold=0.1), r"threshold = 0\.1"),
        (TimelineConfig(["a@step1", "a@step2"], "{text}", topics_from="{words}", topics=9), r"topics = 9: no effect"),
        (TopicsConfig("{text}", "{model}"), None),
        (TopicsConfig("{text}", "{empty}/x"), "no such model"),
        (TopicsConfig("{text}", "{empty}"), r"has no tokenizer: expected tokenizer\.json"),
        (TimelineConfig(["a@step1", "a@step2"], "{text}"), None),
        (TimelineConfig(["a@step1", "a@step2"]), "no text is given"),
        (TimelineConfig(["a@step1", "{empty}/step-2"], "{text}"), "has no weights"),
        (TimelineConfig(["a@step1", "a@step2"], "{text}", topics_from="{empty}/x"), "does not exist"),
        (WordsConfig("{model}", [["a", "b"]]), None),
        (WordsConfig("{empty}", [["a", "b"]]), r"no config\.json"),
    ],
)
def test_inputs_are_checked_before_the_work(tmp_path: Path, config: Any, said: str | None) -> None:
    places = {"empty": tmp_path / "empty", "text": tmp_path / "a.txt", "blank": tmp_path / "b.txt"}
    places["model"] = Path(model_at(tmp_path / "model", "config.json", "model.safetensors", "tokenizer.json"))
    model_at(places["empty"] / "step-2", "config.json")
    places["text"].write_text("some text\n")
    places |= {"words": tmp_path / "words.csv", "lines": tmp_path / "a.jsonl"}
    places["words"].write_text("word,topic\nbread,kitchen\nboat,sea\n")
    places["lines"].write_text('{"text": "some text", "subject": "sea"}\n{"text": "bread", "subject": "kitchen"}\n' * 2)
    places["blank"].write_text(" \n")

    def filled(value: Any) -> Any:
        if isinstance(value, list):
            return [filled(part) for part in value]
        return value.format(**places) if isinstance(value, str) else value

    given = type(config).of({name: filled(value) for name, value in config.as_dict().items()})
    if said is None:
        check_inputs(given)
    else:
        with pytest.raises(InputError, match=said):
            check_inputs(given)


HEAVY = ("torch", "transformers", "pyarrow", "matplotlib")


REFUSED = [
    (["probe", "{here}/nothing", "--corpus", "{corpus}", "--out", "{here}/out"], "no such model"),
    (["probe", "{here}", "--corpus", "{corpus}"], "it has no config.json"),
    (["probe", "bert", "--corpus", "{here}/nothing"], "no such corpus"),
    (["probe", "bert", "--corpus", "{corpus}", "--text-field", "body"], "it has 'text', 'title'"),
    (["probe", "bert", "--corpus", "{corpus}", "--topics-from", "{here}/nothing"], "does not exist"),
    (["probe", "bert", "--corpus", "{corpus}", "--bootstrap", "0"], "bootstrap = 0"),
    (["probe", "bert", "--corpus", "{corpus}", "--engine", "spark"], "engine 'spark'"),
    (["timeline", "{here}/nothing", "--corpus", "{corpus}"], "no such folder"),
    (["timeline", "bert@step1", "bert@step2"], "no text is given"),
    (["topics", "{here}/nothing", "--tokenizer", "bert"], "no such corpus"),
    (["topics", "{corpus}"], "tokenizer is missing"),
    (["topics", "{corpus}", "--tokenizer", "{here}"], "has no tokenizer: expected tokenizer.json"),
    (["topics", "{corpus}", "--tokenizer", "bert", "--backend", "x"], "backend = 'x'"),
    (["words", "{here}/nothing", "frog", "toad"], "no such model"),
    (["words", "bert", "frog"], "at least two words"),
]
RUN = """
import contextlib, io, json, sys
from topicscope.cli.main import main
for arguments in json.loads(sys.argv[1]):
    sys.argv, out, err = ["topicscope", *arguments], io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main()
        except SystemExit as end:
            code = end.code
    loaded = sorted({name.split(".")[0] for name in sys.modules})
    print(json.dumps([code, out.getvalue(), err.getvalue(), loaded]))
"""


def test_bad_input_is_refused_before_anything_heavy_is_loaded(tmp_path: Path) -> None:
    """All in one process, in which no command may leave a library behind."""
    places = {"here": str(tmp_path), "corpus": str(corpus_file(tmp_path))}
    commands = [[argument.format(**places) for argument in arguments] for arguments, _ in REFUSED]
    result = subprocess.run(
        [sys.executable, "-c", RUN, json.dumps(commands)], capture_output=True, text=True, check=True
    )
    lines = result.stdout.splitlines()
    for command, (_, complaint), line in zip(commands, REFUSED, lines, strict=True):
        code, out, err, loaded = json.loads(line)
        assert (code, out, len(err.splitlines())) == (2, "", 1), (command, err)
        assert complaint in err
        assert "pydantic" in loaded  # the list is read rightly
        assert set(loaded).isdisjoint(HEAVY), command
    assert not (tmp_path / "out").exists()
