"""Labels from hidden states: planted in one layer, nowhere, or shuffled; the command and its contract."""

import csv
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch

from tests.command import topicscope
from tests.language import tiny
from tests.language.samples import THETA, assignment, model_folder, texts
from tests.language.test_assignment import NAMES, labelled, lines
from tests.measure.samples import there
from topicscope.language import (
    Assignment,
    LabelRow,
    LoadedModel,
    Measurement,
    Probe,
    StateRow,
    TimelineConfig,
    Topics,
    checked,
    fit_topics,
    label_words,
    probe_model,
    read_probe,
    timeline,
    whole_words,
)
from topicscope.language.probes import label_sentences
from topicscope.language.states import (
    SHUFFLES,
    bags_of_words,
    copies_note,
    drawn_halves,
    mixture_of,
    once,
    originals,
    targets_of,
)
from topicscope.language.vocabulary import word_documents
from topicscope.measure import folded_in, ridge_scores
from topicscope.pages import Lines, sections

TOKENIZER = tiny.tokenizer("wordpiece")
VOCABULARY = whole_words(TOKENIZER, ["the"])
BARE = Measurement(thresholds=[THETA], bootstrap=200, shuffles=0, random=False, cooccurrence=False)
LAYER = 2


class PlantedStates(torch.nn.Module):
    """A model whose states are made by a function of tokens and mask, layer by layer; its attention is uniform."""

    def __init__(self, word: np.ndarray, states: Callable[[torch.Tensor, torch.Tensor], list[torch.Tensor]]) -> None:
        super().__init__()
        self.config = SimpleNamespace(is_encoder_decoder=False, model_type="bert", max_position_embeddings=64)
        self.device, self.word, self.states = torch.device("cpu"), torch.from_numpy(word), states

    def get_output_embeddings(self) -> None:
        """It predicts no words."""

    def get_input_embeddings(self) -> Any:
        return SimpleNamespace(weight=self.word)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor, **_: Any) -> Any:
        count, length = input_ids.shape
        weights = torch.full((count, 1, length, length), 1 / length, dtype=torch.float64)
        return SimpleNamespace(attentions=(weights,), hidden_states=tuple(self.states(input_ids, attention_mask)))


def labelled_states(label_of: dict[int, int], strength: float, size: int = 16) -> PlantedStates:
    """Four layers of noise, the same for all words. In layer 2 each position shows the label of its document."""
    rng = np.random.default_rng(0)
    word = rng.normal(size=(len(TOKENIZER), size))
    vector = strength * torch.from_numpy(rng.normal(size=(len(NAMES), size)))

    def states(input_ids: torch.Tensor, mask: torch.Tensor) -> list[torch.Tensor]:
        noise = torch.Generator().manual_seed(int(input_ids.sum()))
        layers = [torch.randn(*input_ids.shape, size, generator=noise, dtype=torch.float64) for _ in range(4)]
        labels = [label_of.get(mark(ids[there > 0]), 0) for ids, there in zip(input_ids, mask, strict=True)]
        layers[LAYER] += vector[labels][:, None]
        return layers

    return PlantedStates(word, states)


def mark(ids: Any) -> int:
    """Tells documents apart by their tokens."""
    return int(sum((place + 1) * int(token) ** 2 for place, token in enumerate(ids)))


def planted_labels(strength: float, seed: int = 0, *, shuffled: bool = False) -> list[LabelRow]:
    """The label that the states show is that of the text; `shuffled`: the probe is given others."""
    texts, labels = labelled(150, seed)
    truth = {mark(TOKENIZER(text)["input_ids"]): NAMES.index(label) for text, label in zip(texts, labels, strict=True)}
    if shuffled:
        labels = [labels[i] for i in np.random.default_rng(seed).permutation(len(labels))]
    loaded = LoadedModel("planted", labelled_states(truth, strength), TOKENIZER, 60)
    words = label_words(texts, labels, VOCABULARY)
    return probe_model(loaded, texts, words, BARE, labels=labels, vocabulary=VOCABULARY).labels


def test_labels_are_found_in_the_layer_that_holds_them() -> None:
    rows = planted_labels(2.0)
    assert [row.layer for row in rows] == [0, 1, 2, 3]
    found = rows[LAYER]
    assert min(found.accuracy, found.macro_f1) > 0.97
    assert (found.chosen_folds, found.chosen_accuracy) == (5, found.accuracy)
    assert rows[0].bag_of_words > 0.97  # nine words of ten are of the label
    for row in (rows[0], rows[1], rows[3]):
        assert abs(row.accuracy - row.majority) < 0.12, "noise guesses like chance"
        assert row.chosen_folds == 0
    (sentence,) = label_sentences(rows)
    assert "encoder 2 in 5 of 5" in sentence


def test_a_model_without_labels_is_no_better_than_the_most_common_one() -> None:
    for seed in range(5):
        rows = planted_labels(0.0, seed)
        assert all(row.interval is not None for row in rows)
        assert there(rows[0].chosen_interval)[0] <= rows[0].majority


def test_shuffled_labels_are_not_found() -> None:
    rows = planted_labels(2.0, shuffled=True)
    assert all(row.interval is not None and row.interval[0] < row.majority for row in rows)
    assert rows[0].bag_of_words < rows[0].majority + 0.1


def test_labels_of_few_documents_are_left_out_and_said() -> None:
    texts, labels = labelled(60)
    loaded = LoadedModel("planted", labelled_states({}, 0.0), TOKENIZER, 60)
    words = label_words(texts, labels, VOCABULARY)

    def probed(given: list[str | None], measurement: Measurement = BARE) -> Probe:
        return probe_model(loaded, texts, words, measurement, labels=given, vocabulary=VOCABULARY)

    rare = probed(["chess", None, *labels[2:]])
    assert "labels from hidden states: 1 labels with fewer than 5 of the 59 documents are left out" in rare.notes
    assert {(row.documents, row.classes) for row in rare.labels} == {(58, 4)}
    assert not any("labels are not guessed" in note for note in rare.notes)
    none = probed([*labels[:4], *[None] * 56])
    assert none.labels == []
    assert any("fewer than two labels have 5 of the 4 documents" in note for note in none.notes)
    without = probed([*labels], replace(BARE, states=False))
    assert without.labels == []
    assert "labels are not guessed: that takes hidden states, which are off (--no-states)" in without.notes


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    texts, labels = labelled(120)
    records = [{"text": text, "subject": label} for text, label in zip(texts, labels, strict=True)]
    return lines(tmp_path_factory.mktemp("corpus") / "a.jsonl", [*records, {"text": "bread boat"}])


@pytest.mark.process
def test_the_command_and_its_contract(corpus: Path, tmp_path: Path) -> None:
    model = model_folder(tmp_path)
    command = ["probe", str(model), "--corpus", str(corpus), "--label-field", "subject", "--threshold", str(THETA)]
    few = ["--documents", "80", "--bootstrap", "50", "--shuffles", "50"]
    done = topicscope(*command, *few, "--json", "--out", str(tmp_path / "out"))
    found = json.loads(done.stdout)
    rows = found["labels"]["rows"]
    names = {"model", "variant", "layer", "accuracy", "interval", "macro_f1", "majority", "bag_of_words"}
    assert names <= set(rows[0])
    assert [row["variant"] for row in rows] == ["trained"] * 3 + ["random"] * 3
    assert [row["layer"] for row in rows] == [0, 1, 2] * 2
    assert all(0 <= row["majority"] < 0.5 < row["bag_of_words"] <= 1 for row in rows)
    assert any("labels of 'subject': 4 (" in note for note in found["notes"])
    assert any("1 without a label" in note for note in found["notes"])
    assert {row["name"].split(":")[0] for row in found["topics"]} == set(NAMES)
    result = read_probe(tmp_path / "out")
    assert isinstance(result, Probe)
    assert json.loads(json.dumps(result.as_dict())) == {key: found[key] for key in result.as_dict()}
    with (tmp_path / "out" / "labels.csv").open(newline="") as stream:
        assert [float(row["accuracy"]) for row in csv.DictReader(stream)] == [row.accuracy for row in result.labels]
    assert any("labels from hidden states: accuracy" in sentence for sentence in result.summary())
    with (tmp_path / "out" / "label-words-1.csv").open(newline="") as stream:
        listed = list(csv.DictReader(stream))
    assert {row["topic"] for row in listed} == set(NAMES)
    assert all(float(row["z"]) > 1.96 for row in listed)
    (section,) = [one for one in sections(result) if one.title.startswith("Do hidden states predict the label")]
    panel = section.figures[0].panels[0]
    assert isinstance(panel, Lines)
    assert [series.name for series in panel.series] == ["trained", "random weights"]
    assert [label for _, label in panel.levels] == ["bag of words", "most common label"]
    for more, said in (
        (["--topics", "4"], "topics = 4: no effect with the labels of a corpus (label_field)"),
        (["--topics-from", str(corpus)], "label_field and topics_from both say"),
        (["--label-field", "genre"], "no document has a label in the field 'genre'; the corpus has 'text', 'subject'"),
    ):
        refused = topicscope(*command, *more, "--out", str(tmp_path / "refused"), code=2)
        assert said in refused.stderr.replace("\n", " ")
        assert not (tmp_path / "refused").exists()


def test_a_timeline_takes_labels_as_topics(corpus: Path, tmp_path: Path) -> None:
    model = model_folder(tmp_path)
    for step in (1, 2):
        shutil.copytree(model, tmp_path / "run" / f"step-{step}")
    config = TimelineConfig(
        str(tmp_path / "run"), str(corpus), label_field="subject", threshold=THETA, documents=30, bootstrap=20
    )
    result = timeline(config)
    assert any("24 words of 4 topics, 30 documents" in note for note in result.notes)
    assert any(note.startswith("labels of 'subject': 4 (") for note in result.notes)


PLAIN = replace(BARE, thresholds=(0.0005, 0.001, 0.002), bootstrap=5)


def states_with_topics(a: Assignment, seed: int, size: int = 24) -> PlantedStates:
    """Four layers of states: words and noise in all, topics of words in layer 1, of documents in layer 2.

    In layer 3 every document has a vector of its own, larger than all else.
    """
    rng = np.random.default_rng(seed)
    word, topics = rng.normal(size=(len(TOKENIZER), size)), a.membership.topics
    table = np.full(len(TOKENIZER), topics)
    table[a.token[a.membership.word]] = a.membership.topic
    topic, of_word = torch.from_numpy(table), torch.from_numpy(word)
    vector = torch.from_numpy(np.concatenate([rng.normal(size=(topics, size)), np.zeros((1, size))]))

    def states(ids: torch.Tensor, _mask: torch.Tensor) -> list[torch.Tensor]:
        noise = torch.Generator().manual_seed(int(ids.sum()) + seed)

        def drawn(length: int) -> torch.Tensor:
            return torch.randn(len(ids), length, size, generator=noise, dtype=torch.float64)

        layers = [of_word[ids] + drawn(ids.shape[1]) for _ in range(4)]
        layers[1] += vector[topic[ids]]
        shares = torch.nn.functional.one_hot(topic[ids], topics + 1).double().mean(1)
        layers[2] += 3 * (shares @ vector)[:, None]
        layers[3] += 5 * drawn(1)
        return layers

    return PlantedStates(word, states)


def planted(seed: int, documents: int = 60) -> list[StateRow]:
    a = assignment(VOCABULARY, several=False)
    loaded = LoadedModel("planted", states_with_topics(a, seed), TOKENIZER, 40)
    measurement = replace(PLAIN, bootstrap=200, shuffles=400, seed=seed)
    return probe_model(loaded, texts(documents, seed), a, measurement, vocabulary=VOCABULARY).states


NO_HEAD = "loss of documents: this model was given without an output head that predicts words"


@pytest.mark.slow
def test_topics_of_words_are_found_in_their_layer_and_nowhere_else() -> None:
    """Layer 3: all states of a document are alike, and documents have topics; pairs across documents show nothing."""
    wrong = 0
    for seed in range(20):
        effects = [row.effects["centred"] for row in planted(seed, 40)]
        assert all(effect is not None and effect.interval is not None for effect in effects)
        seen = [e.p_value is not None and e.p_value <= 0.025 and e.interval[0] > 0 for e in effects if e and e.interval]
        wrong += seen[1] is not True or seen[0] or seen[3]
    assert wrong <= 1


def test_topics_of_documents_are_found_where_a_linear_map_reads_them() -> None:
    scores = [there(row.mixture) for row in planted(1, 150)]
    r2 = [there(score.mixture_r2) for score in scores]
    assert len(r2) == 4
    assert r2[2] > 0.95 > r2[0] > 0.3 > r2[3]  # words alone say a part of it; one large vector per document hides them
    single = [there(score.by_position["2/4"]) for score in scores]
    assert single[2] > 0.5 > single[0]
    for score in scores:
        assert there(score.shuffled_r2) < 0.05
        assert there(score.bag_of_words_r2) > 0.7
        assert list(score.by_position) == ["1/4", "2/4", "3/4", "4/4"]


def test_few_documents_and_models_without_states_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded, a = loaded_model(), assignment(VOCABULARY, several=False)
    few = probe_model(loaded, texts(6), a, PLAIN, vocabulary=VOCABULARY)
    assert few.states[0].mixture is None
    assert [note for note in few.notes if not note.startswith("warning: document ")] == [
        "hidden states: fewer than 10 documents have words of topics, too few to predict mixtures; give more documents",
        NO_HEAD,
    ]
    without = states_with_topics(a, 0)
    whole = without.forward

    def stripped(**inputs: Any) -> Any:
        output = whole(**inputs)
        output.hidden_states = tuple(layer[:, :2] for layer in output.hidden_states)
        return output

    monkeypatch.setattr(without, "forward", stripped)
    none = probe_model(LoadedModel("planted", without, TOKENIZER, 40), texts(12), a, PLAIN, vocabulary=VOCABULARY)
    assert none.states == []
    assert [note for note in none.notes if not note.startswith("warning: document ")] == [
        "hidden states: this model returns none for each position, so they are not measured",
        NO_HEAD,
    ]


def test_originals_have_the_same_words() -> None:
    texts = ["a  boat\n", "Bread", "a boat", " bread", "Bread", ""]
    assert originals(texts).tolist() == [0, 1, 0, 3, 1, 5]
    assert once([4, 2, 3, 0], originals(texts)) == [2, 3, 4]
    assert copies_note(originals(texts)).startswith("2 of the 6 documents have the text of another")
    assert copies_note(originals(texts[:2])) == ""


@pytest.mark.parametrize("seed", range(5))
def test_halves_hold_as_many_texts_and_all_copies_of_each(seed: int) -> None:
    of = originals([f"text {number % 31}" for number in range(80)])
    halves = drawn_halves(of, seed)
    assert all(len(set(halves[of == text])) == 1 for text in of)
    assert abs(int(drawn_halves(np.arange(31), seed).sum()) - 15.5) == 0.5
    assert halves.tolist() == drawn_halves(of, seed).tolist() != drawn_halves(of, seed + 1).tolist()


def loaded_model() -> LoadedModel:
    return checked("encoder", tiny.model("encoder", len(TOKENIZER)), TOKENIZER)


def test_topics_in_turn_leave_words_to_compare() -> None:
    """Documents of even number hold the words of two topics, the others those of the other two."""
    a = assignment(VOCABULARY, several=False)
    topics = [[a.words[w] for w in a.membership.word[a.membership.topic == k]] for k in range(2)]
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(topics[number % 2], 12)) for number in range(40)]
    rows = probe_model(loaded_model(), texts, a, BARE, vocabulary=VOCABULARY).states
    assert {row.words for row in rows} == {sum(map(len, topics))}


def test_copies_do_not_tell_the_label() -> None:
    """Labels by chance, each document twice: with copies in both, four folds know most of the fifth."""
    texts, _ = labelled(60)
    drawn = np.random.default_rng(17).integers(len(NAMES), size=60)
    labels: list[str | None] = [NAMES[k] for k in drawn]
    words = label_words(texts, labels, VOCABULARY)
    one = probe_model(loaded_model(), texts, words, BARE, labels=labels, vocabulary=VOCABULARY)
    two = probe_model(loaded_model(), texts * 2, words, BARE, labels=labels * 2, vocabulary=VOCABULARY)
    assert [row.documents for row in two.labels] == [60] * 3
    assert [row.accuracy for row in two.labels] == pytest.approx([row.accuracy for row in one.labels])
    assert max(row.accuracy for row in two.labels) < 0.5
    for row, alone in zip(two.states, one.states, strict=True):
        assert there(row.mixture).documents == 60
        assert there(row.mixture).mixture_r2 == pytest.approx(there(alone.mixture).mixture_r2)
    assert any(note.startswith("60 of the 120 documents have the text of another") for note in two.notes)
    assert not any("text of another" in note for note in one.notes)
    given = [*[None] * 60, *labels]  # a text has the label of a copy that has one
    half = probe_model(loaded_model(), texts * 2, words, BARE, labels=given, vocabulary=VOCABULARY)
    assert [row.accuracy for row in half.labels] == pytest.approx([row.accuracy for row in one.labels])
    assert {row.documents for row in half.labels} == {60}


def test_a_probe_warns_of_a_long_document() -> None:
    """Some documents may lack a row, as the empty one does."""
    a = assignment(VOCABULARY, several=False)
    short, long = "honey garlic boat anchor", " ".join(["honey garlic boat anchor"] * 6)
    for shown, named in (
        ([short + f" {n}" for n in range(8)], ""),
        (["", *[short + f" {n}" for n in range(8)], long], "9"),
    ):
        probe = probe_model(loaded_model(), shown, a, BARE, vocabulary=VOCABULARY)
        said = [line for line in probe.summary() if line.startswith("warning: document ")]
        assert [line.split()[2] for line in said] == ([named] if named else [])
        assert set(said) <= set(probe.as_dict()["notes"])


ALL_WORDS = whole_words(tiny.tokenizer("wordpiece"))


def tokens_of(several: list[str]) -> list[np.ndarray]:
    return [ALL_WORDS.token[words] for words in word_documents(several, ALL_WORDS)]


def test_given_topics_are_shares_of_their_words() -> None:
    """'bread' is in kitchen and sea, 'butter' in kitchen, music and law; 'judge' in none."""
    shares = mixture_of(assignment(ALL_WORDS, several=True))
    (plain, mixed, none) = tokens_of(["cheese boat boat choir", "bread butter", "judge judge"])
    np.testing.assert_allclose(cast("Any", shares(0, plain)), [0.25, 0.5, 0.25, 0])
    np.testing.assert_allclose(cast("Any", shares(0, mixed)), np.array([1 / 2 + 1 / 3, 1 / 2, 1 / 3, 1 / 3]) / 2)
    assert shares(0, none) is None
    assert shares(0, np.empty(0, dtype=int)) is None


@pytest.fixture(scope="module")
def topics() -> Topics:
    return fit_topics(texts(60), ALL_WORDS, 4, iterations=20)


def test_fitted_topics_are_folded_in(topics: Topics) -> None:
    shares = mixture_of(topics)
    for tokens in tokens_of(texts(3, 5)):
        counts = np.array([(tokens == token).sum() for token in topics.token], dtype=float)
        np.testing.assert_allclose(cast("Any", shares(0, tokens)), folded_in(topics.probability, counts), atol=1e-12)
    assert shares(0, np.array([len(tiny.tokenizer("wordpiece")) + 5])) is None


def test_targets_have_halves_bags_and_shuffles(topics: Topics) -> None:
    listed = tokens_of(texts(25, 3))
    listed[4] = np.empty(0, dtype=int)  # a document without words has no mixture
    targets = there(targets_of(topics, dict(enumerate(listed)), 7))
    assert targets.documents == [n for n in range(25) if n != 4]
    mixture, used = mixture_of(topics), [listed[n] for n in targets.documents]
    halves = np.stack([cast("Any", mixture(0, tokens[::2])) for tokens in used])  # all words of these texts have topics
    np.testing.assert_allclose(there(targets.half_document).errors, ((halves - targets.shares) ** 2).sum(1), atol=1e-12)
    bag = bags_of_words(used)
    words = np.unique(np.concatenate(used))
    assert bag[2].tolist() == pytest.approx([np.log(1 + (used[2] == word).sum()) for word in words])
    assert targets.bag_of_words.errors.tolist() == ridge_scores(bag, targets.shares, seed=7)[0].errors.tolist()
    assert len(targets.orders) == SHUFFLES
    assert all(sorted(order) == list(range(24)) for order in targets.orders)
    assert targets_of(topics, dict(enumerate(listed[:9])), 7) is None
    assert targets.shares.sum(1) == pytest.approx(np.ones(24))
