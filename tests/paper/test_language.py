"""Language models: made-up texts, the small models, what is probed, and what is said of it."""

import itertools
import json
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.paper import samples_language as models
from tests.paper.samples import judged, panel_of
from tests.paper.samples_language import effect, small_bert
from tests.paper.short_training import Training, shortened
from topicscope import language, pretraining
from topicscope.language import Probe
from topicscope.pages import Lines
from topicscope.paper import EXPERIMENTS, Context, Reproduction, language_models, made_up
from topicscope.paper.made_up import (
    ARCHITECTURES,
    LENT,
    PAIR_CHANCE,
    SENTENCE,
    SENTENCES,
    SPECIAL,
    build_tokenizer,
    draws,
    fixed_pairs,
    sample_language,
    sample_texts,
    topic_words,
    word_lists,
)
from topicscope.pretraining.data import Rows


def test_topics_lend_their_last_words_to_the_next() -> None:
    table = topic_words(4, 5)
    assert table.shape == (4, 20)
    assert table.sum(1) == pytest.approx(np.ones(4))
    for topic in range(4):
        own, before = range(5 * topic, 5 * topic + 5), (topic - 1) % 4
        lent = range(5 * before + 5 - LENT, 5 * before + 5)
        assert set(np.flatnonzero(table[topic])) == {*own, *lent}
        ratios = [table[topic, word] / table[before, word] for word in lent]
        assert ratios == pytest.approx([0.5] * LENT)
        assert all(table[topic, i] > table[topic, i + 1] for i in own[:-1])


def test_pairs_are_of_two_topics_and_share_no_word() -> None:
    pairs = fixed_pairs(12, 12)
    assert len(pairs) == 24
    assert not set(pairs) & set(pairs.values())
    assert len(set(pairs.values())) == len(pairs)
    shares = topic_words(12, 12) > 0
    assert not any((shares[:, first] & shares[:, second]).any() for first, second in pairs.items())


def test_draws_follow_their_distributions() -> None:
    table = np.array([[[0.2, 0.5, 0.3]]])
    picked = [int(draws(table, np.array([[u]]))[0, 0]) for u in (0.0, 0.19, 0.2, 0.69, 0.7, 0.999999999999)]
    assert picked == [0, 0, 1, 1, 2, 2]
    assert int(draws(np.array([[[0.1] * 9]]), np.array([[0.95]]))[0, 0]) == 8  # beyond the last


def test_the_language_has_topics_by_sentence_and_pairs_across_topics() -> None:
    lists = word_lists()
    made = sample_language(lists, 2)
    assert sample_language(lists, 2).texts == made.texts
    assert sample_language(lists, 3).texts != made.texts
    number = {word: i for i, word in enumerate(made.words)}
    rows = np.array([[number[word] for word in text.split()] for text in made.texts])
    assert rows.shape == (3000, SENTENCE * SENTENCES)
    followed = np.isin(rows[:, :-1], list(made.pairs))
    seconds = np.array([made.pairs.get(word, -1) for word in rows[:, :-1].ravel()]).reshape(rows[:, :-1].shape)
    chance = (rows[:, 1:] == seconds)[followed].mean()
    assert chance == pytest.approx(PAIR_CHANCE, abs=0.02)
    # some topic explains every word of a sentence that no pair has put there
    plain = np.concatenate([np.ones((len(rows), 1), bool), rows[:, 1:] != seconds], axis=1)
    fits = made.probability[:, rows] > 0
    whole = (fits | ~plain).reshape(12, 3000, SENTENCES, SENTENCE).all(3).any(0)
    assert whole.all()


def test_known_topics_and_what_stands_together_most_often() -> None:
    lists = word_lists()
    made, tokenizer = sample_language(lists, 0), build_tokenizer(lists)
    topics = made.topics(tokenizer)
    assert len(topics) == 12
    for topic, (name, words) in enumerate(lists.items()):
        assert topics.top_words(topic, 12) == words, name
    counts = {word: sum(text.split().count(word) for text in made.texts) for word in ("bread", "virus")}
    assert {word: topics.frequency[topics.words.index(word)] for word in counts} == counts
    fixed = {frozenset((made.words[a], made.words[b])) for a, b in made.pairs.items()}
    commonest = [frozenset(topics.words[i] for i in pair) for pair in topics.cooccurring[:21].tolist()]
    assert all(pair in fixed for pair in commonest)  # the control of Table 2 has something to find
    one = language.assign(topics, 15.5 / topics.vocabulary_size)
    many = language.assign(topics, 15.5 / topics.vocabulary_size, "many")
    assert (len(one.membership.word), len(many.membership.word)) == (144, 144 + 12 * LENT)
    home = {word: k for k, listed in enumerate(lists.values()) for word in listed}
    assert all(
        home[one.words[word]] == topic for word, topic in zip(one.membership.word, one.membership.topic, strict=True)
    )


@pytest.mark.model
def test_five_architectures_are_trained_once_repeat_and_are_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(made_up, "TRAINING_STEPS", {"quick": 2, "full": 3})
    small_models = made_up.small_models
    found = small_models(Context("quick", 1))
    assert [model.name for model in found.models] == [f"small-{name}" for name in ARCHITECTURES]
    assert [model.model.config.model_type for model in found.models] == list(ARCHITECTURES)
    assert small_models(Context("quick", 1)) is found
    losses = dict(found.losses)
    assert all(4.9 < first < 5.2 for first, _ in losses.values())  # log 150 = 5.01
    assert losses["small-bert"] != losses["small-electra"]  # another seed: else they were the same model
    monkeypatch.setattr(made_up, "ARCHITECTURES", ARCHITECTURES[:2])
    again = small_models.__wrapped__(Context("quick", 1))
    assert again.losses == {name: losses[name] for name in ("small-bert", "small-albert")}
    for one, other in zip(found.models, again.models, strict=False):
        for name, weight in one.model.state_dict().items():
            assert weight.equal(other.model.state_dict()[name]), (one.name, name)

    # the four experiments on an encoder and an encoder-decoder: after two steps nothing is learnt
    few = replace(found, models=(found.models[0], found.models[2]))
    for module in (made_up, language_models):
        monkeypatch.setattr(module, "small_models", lambda _: few)
    outcomes = {name: EXPERIMENTS[name].run(Context(seed=1)) for name in ("table1", "table2", "table5", "figure3")}
    assert {name: outcome.verdict for name, outcome in outcomes.items()} == dict.fromkeys(outcomes, "not reproduced")
    for name, outcome in outcomes.items():
        assert outcome.config["models"] == ["small-bert", "small-bart"]
        assert EXPERIMENTS[name].judged(Context())
        assert json.dumps(asdict(outcome))
    rows = outcomes["table1"].numbers["rows"]
    assert [(row["variant"], row["words"]) for row in rows] == [("trained", 144), ("random", 144)] * 2
    assert {row["topics_per_word"] for row in outcomes["table5"].numbers["rows"]} == {"many"}
    assert [row["pairs"] for row in outcomes["table2"].numbers["rows"]] == [21] * 2
    assert len(outcomes["figure3"].figures[0].panels) == 4
    small_models.cache_clear()


def test_texts_are_documents_of_the_sandbox_in_words() -> None:
    lists = word_lists()
    texts = sample_texts(lists, 2)
    assert (len(texts), {len(text.split()) for text in texts}) == (3000, {48})
    assert texts[0].startswith("athlete father medal hockey soccer medal arena tennis stadiu")  # the reference run's
    assert texts[-1].endswith("beach shore referee league coral mast shore captain beach")
    assert {word for text in texts for word in text.split()} == {word for topic in lists.values() for word in topic}


def test_the_tokenizer_has_one_token_per_word() -> None:
    lists = word_lists()
    tokenizer = build_tokenizer(lists)
    words = [word for topic in lists.values() for word in topic]
    assert len(tokenizer) == len(SPECIAL) + 1 + len(words)
    ids = tokenizer(" ".join(words[:3]))["input_ids"]
    assert ids == [2, 6, 7, 8, 3]  # [CLS], three words after the special tokens and 'a', [SEP]
    assert (tokenizer.mask_token_id, tokenizer.pad_token_id, tokenizer.unk_token_id) == (4, 0, 1)
    assert tokenizer.model_max_length == 50


def test_a_row_of_the_training_is_one_document() -> None:
    lists = word_lists()
    texts, tokenizer = sample_texts(lists, 2)[:200], build_tokenizer(lists)
    settings = pretraining.PretrainConfig.of(language_models.BERT_SETTINGS)
    model, losses = language_models.train_bert(tokenizer, texts, 4, 2)
    assert len(losses) == 4
    assert losses == pytest.approx([np.log(len(tokenizer))] * 4, abs=0.1)  # untrained, it guesses among all tokens
    assert not model.training
    rows = Rows(texts, tokenizer, settings.length, 2).take(0, settings.batch_size)
    documents = {tuple(row) for row in tokenizer(texts)["input_ids"]}
    assert {tuple(row[:-1]) for row in rows.tolist()} <= documents
    assert (settings.masking.p_mask, settings.masking.p_correct, settings.masking.p_random) == (0.15, 0.1, 0.1)


def fitted(topics: list[list[str]]) -> Any:
    words = sorted(word for topic in topics for word in topic)
    pairs = [(words.index(word), k) for k, topic in enumerate(topics) for word in topic]
    word, topic = (np.array(side) for side in zip(*pairs, strict=True))
    return SimpleNamespace(
        words=tuple(words), membership=SimpleNamespace(word=word, topic=topic), names=("?",) * len(topics)
    )


def test_topics_are_matched_one_to_one() -> None:
    lists = {"kitchen": ["bread", "butter", "cheese"], "sea": ["boat", "beach", "coral"]}
    lists |= {"law": ["court", "judge", "bail"]}
    exact = [lists["law"], lists["kitchen"], lists["sea"]]
    assert language_models.matching(fitted(exact), lists) == (1.0, ["law", "kitchen", "sea"])
    mixed = [["court", "judge", "bread"], ["butter", "cheese", "boat"], ["beach", "coral"]]
    share, names = language_models.matching(fitted(mixed), lists)
    assert share == pytest.approx(6 / 9)  # bail is nowhere
    assert names == ["law", "kitchen", "sea"]
    every = [
        sum(len(set(topic) & set(lists[name])) for topic, name in zip(mixed, order, strict=True))
        for order in itertools.permutations(lists)
    ]
    assert share * 9 == pytest.approx(max(every))


@pytest.mark.parametrize(("scale", "steps"), [("quick", 900), ("full", 2500)])
def test_what_is_trained_fitted_and_probed(monkeypatch: pytest.MonkeyPatch, scale: Any, steps: int) -> None:
    asked: dict[str, Any] = {}
    lists = word_lists()
    topics = [*list(lists.values())[1:], next(iter(lists.values()))]  # the fit has another order

    def train(tokenizer: Any, texts: list[str], count: int, seed: int) -> tuple[str, list[float]]:
        asked["train"] = (len(tokenizer), len(texts), count, seed)
        return "model", [3.0, 2.0]

    def fit(texts: list[str], words: Any, count: int, **options: Any) -> str:
        asked["fit"] = (len(texts), count, options)
        return "topics"

    def assign(model: str, threshold: float, names: tuple[str, ...] = ()) -> Any:
        asked.setdefault("assign", []).append((model, threshold, names))
        return fitted(topics)

    def probe(model: Any, texts: list[str], assignment: Any, measurement: Any) -> str:
        asked["probe"] = (model, texts, measurement.seed)
        return "probe"

    monkeypatch.setattr(language_models, "train_bert", train)
    monkeypatch.setattr(language, "fit_topics", fit)
    monkeypatch.setattr(language, "assign", assign)
    monkeypatch.setattr(language, "checked", lambda name, model, _: (name, model))
    monkeypatch.setattr(language, "probe_model", probe)
    found: Any = language_models.measure_pipeline(Context(scale, 2))
    assert (found.probe, found.accuracy, found.losses, found.topics) == ("probe", 1.0, [3.0, 2.0], len(lists))
    size = len(SPECIAL) + 1 + sum(map(len, lists.values()))
    assert asked["train"] == (size, 3000, steps, 2)
    assert asked["fit"] == (3000, len(lists), {"iterations": 50, "restarts": 12, "stability": False, "seed": 2})
    (_, threshold, _), named = asked["assign"]
    assert int(threshold * size) == len(topics[0])  # as many words for a topic as it has
    assert (threshold * size) % 1 == pytest.approx(0.5)  # however the product is rounded
    assert named == ("topics", threshold, (*list(lists)[1:], next(iter(lists))))
    model, texts, seed = asked["probe"]
    assert (model, texts, seed) == (("small BERT", "model"), sample_texts(lists, 2)[:150], 2)


def test_the_outcome_says_what_was_found() -> None:
    outcome = judged("pipeline", small_bert(0.96))
    weak = judged("pipeline", small_bert(dot=effect(-0.1), attention=effect(0.05, p_value=0.2)))
    assert "; not found: dot, attention; " in weak.reason
    loud = judged("pipeline", small_bert(variant="random", cosine=effect(0.01)))
    assert loud.reason.endswith("every effect is found; the random model shows an effect")
    assert outcome.numbers["accuracy"] == 0.96
    assert outcome.numbers["loss"] == pytest.approx([3 - 0.01 * 9.5, 3 - 0.01 * 75.5])  # first 20, last 50 of 101
    curve = panel_of(Lines, outcome, 0, 0)
    assert curve.series[0].x == [10.0 * i for i in range(11)]
    assert curve.series[0].y == pytest.approx([3 - 0.1 * i for i in range(11)])
    assert [figure.name for figure in outcome.figures] == ["pipeline-training", "pipeline-1", "pipeline-2"]
    assert outcome.config == {"documents": 3000, "length": 48, "steps": 101, "topics": 12}


@pytest.mark.parametrize("name", ["table1", "table5", "table2"])
@pytest.mark.parametrize("scale", ["quick", "full"])
def test_what_is_probed(monkeypatch: pytest.MonkeyPatch, name: str, scale: Any) -> None:
    asked: list[Any] = []
    pairs = name == "table2"
    settings: dict[str, Any] = {"topics_per_word": ("many" if name == "table5" else "one",), "cooccurrence": pairs}
    settings |= {"random": not pairs, "shuffles": 0 if pairs else 1000}

    def probe(config: Any) -> Probe:
        asked.append(config)
        return Probe()

    monkeypatch.setattr(language, "probe", probe)
    found: Any = EXPERIMENTS[name].measure(Context(scale, 3, ("a", "b"), ("text.txt",)))
    (config,) = asked
    settings |= {"matched": name != "table2", "seed": 3, "device": "cpu", "topics": 100, "max_documents": 2500}
    settings |= {"documents": 250 if scale == "quick" else 1000}
    assert {key: getattr(config, key) for key in settings} == settings
    assert (tuple(config.models), tuple(config.corpus)) == (("a", "b"), ("text.txt",))
    assert found.config == {"models": ["a", "b"], "corpus": ["text.txt"]}


@pytest.mark.parametrize(("known", "said"), [(True, "made-up texts"), (False, "models and texts are those that were")])
def test_sizes_differ_for_the_reason_of_the_models_that_were_probed(known: bool, said: str) -> None:
    found = replace(models.small_probed(), known=known)
    outcome = EXPERIMENTS["table1"].judge(found)
    reproduction = Reproduction(Context(), {"table1": replace(outcome, verdict="reproduced", ours=9.0)}, {}, Path("x"))
    assert f"ours 9) because {said}" in reproduction.sizes("table1").replace("these are small models on ", "")


def test_ratios_in_words() -> None:
    outcome = judged("table1")
    assert outcome.measured.count(";") == 5
    assert len(outcome.numbers["rows"]) == 12
    assert outcome.numbers["rows"][5]["attention"]["ratio"] == pytest.approx(1.2)
    assert judged("table5").paper.split(": ", 1)[1].startswith("bert-base: 1.14 1.04 1.23 / ")
    weak = models.probed(4, dot=models.effect(-0.1), cosine=None)
    assert judged("table1", weak).reason.startswith("no effect: cosine of roberta at 0.001, dot of roberta at 0.001; ")
    assert judged("table5", weak).reason.startswith("every effect has a 95% interval above zero; ")


def test_cooccurrence_in_words() -> None:
    outcome = judged("table2")
    assert outcome.numbers["rows"][5]["cosine"]["same_topic"] == 0.45
    assert len(outcome.tables[0].rows) == 6


def test_word_maps_in_words() -> None:
    outcome = judged("figure3")
    assert outcome.tables[0].rows[1] == ["roberta", *("0.600", "0.200") * 2, "9 of 9", "-"]
    assert outcome.numbers["means"]["roberta"] == pytest.approx([0.6, 0.2])
    assert outcome.ours == pytest.approx(0.4)
    assert [panel.title for panel in outcome.figures[0].panels] == ["bert-base", "roberta"]


def test_words_that_are_no_whole_tokens_decide_nothing() -> None:
    outcome = judged("figure3", models.word_maps(0.6, 0.2, (1, 2, 2) * 3))
    assert outcome.verdict == "undecided"
    assert outcome.tables[0].rows[1][3:6] == ["-", "-", "3 of 9"]
    assert outcome.ours == pytest.approx(0.4)  # of the model that decides
    nobody = replace(models.word_maps(), maps={"x": models.word_map("x", 0.6, 0.2, (2,) * 9)})
    assert (judged("figure3", nobody).verdict, judged("figure3", nobody).ours) == ("undecided", None)


def test_means_of_whole_tokens_pair_by_pair() -> None:
    words = models.word_map("x", 0.0, 0.0, (1, 1, 2, 1, 3, 1, 2, 1, 1))
    cosine = np.random.default_rng(0).uniform(-1, 1, (9, 9))
    words = replace(words, cosine=cosine + cosine.T)
    pairs: dict[bool, list[float]] = {True: [], False: []}
    for i, j in itertools.permutations([k for k in range(9) if words.pieces[k] == 1], 2):
        pairs[words.groups[i] == words.groups[j]].append(float(words.cosine[i, j]))
    expected = [sum(values) / len(values) for values in (pairs[True], pairs[False])]
    assert language_models.whole_means(words) == pytest.approx(expected, abs=1e-12)
    assert np.isnan(language_models.whole_means(replace(words, pieces=(1, 2, 2) * 3))).all()


def test_small_models_in_words() -> None:
    outcome = judged("table1", models.small_probed())
    assert outcome.ours == pytest.approx(2.0)  # of the encoder, and of BART's decoder
    assert outcome.paper.split(": ", 1)[1].startswith("small-bert: 1.21 1.19 1.32 / ")
    silent = judged("table1", models.small_probed(1, decoder=models.effect(-0.1, 1.3)))
    assert silent.verdict == "not reproduced"
    assert judged("table2").ours == pytest.approx((5 * 0.1 + 0.05) / 6)


def test_word_maps_are_of_nine_words(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(language, "load_model", lambda name: name)
    monkeypatch.setattr(language, "word_map", lambda model, groups: asked.append((model, groups)))
    assert list(language_models.measure_words(Context(models=("a", "b"))).maps) == ["a", "b"]
    assert [model for model, _ in asked] == ["a", "b"]
    assert [len(group) for group in asked[0][1]] == [3, 3, 3]


def test_the_timeline_in_words() -> None:
    outcome = judged("timeline", models.sandbox_timelines(models.course(100), models.course(10)))
    later = [run["later"] for run in outcome.numbers["sandbox"]]
    assert later[0]["ratio"] == pytest.approx(100 / 10, rel=1e-9)
    assert later[1]["ratio"] == pytest.approx(1)
    assert [moment["measure"] for moment in outcome.numbers["sandbox"][0]["moments"]] == ["embedding", "attention"]
    assert json.dumps(outcome.numbers)
    assert "text" not in outcome.numbers


def test_the_timeline_of_a_text_is_reported_and_not_judged() -> None:
    text = models.timeline_of(models.course(10), "cosine")
    found = made_up.Timelines(models.sandbox_timelines().sandbox, text, {"sandbox": {}, "text": {}})
    outcome = judged("timeline", found)
    assert outcome.verdict == "reproduced"
    assert outcome.reason == "attention is later in 3 of 3 sandbox runs"
    assert ". On the given text: embeddings: cosine: from step 10 on" in outcome.measured
    assert outcome.tables[-1].title == "On the given text: when topic structure appears"
    assert outcome.numbers["text"]["later"]["ratio"] == pytest.approx(1)
    assert any(figure.name.startswith("timeline-text") for figure in outcome.figures)
    assert outcome.figures[0].name == "timeline-sandbox"


@pytest.mark.parametrize("scale", ["quick", "full"])
def test_a_text_is_pretrained_on_and_probed(monkeypatch: pytest.MonkeyPatch, scale: Any) -> None:
    asked: list[Any] = []
    short: Training = shortened(monkeypatch)

    def pretrain(config: Any, folder: str) -> None:
        asked.append((config, Path(folder).name))

    def of_text(config: Any) -> Any:
        asked.append(config)
        return models.timeline_of(models.course(100), "cosine")

    config = SimpleNamespace(of=lambda settings: SimpleNamespace(as_dict=lambda: settings))
    monkeypatch.setattr(pretraining, "PretrainConfig", config)
    monkeypatch.setattr(pretraining, "pretrain", pretrain)
    monkeypatch.setattr(language, "timeline", of_text)
    found: Any = EXPERIMENTS["timeline"].measure(Context(scale, 2, (), ("x.txt",)))
    (run, name), probe = asked
    quick = scale == "quick"
    assert run.as_dict() == {
        "text": {"corpus": ["x.txt"]},
        "steps": 1500 if quick else 20_000,
        "model": {"layers": 4, "heads": 4, "dim": 64 if quick else 256, "init_scale": 1e-4, "dropout": 0.0},
        "optimizer": {"lr": 0.001},
        "seed": 2,
        "checkpoint_every": None,
        "held_out": {"share": 0.0},
        "length": 64 if quick else 128,
        "batch_size": 32 if quick else 64,
    }
    assert [Path(folder).name for folder in probe.snapshots] == [name]
    assert (tuple(probe.corpus), probe.seed, probe.threshold) == (("x.txt",), 2, 0.002)
    assert probe.documents == (100 if quick else 250)
    assert found.text is not None
    assert set(found.config) == {"sandbox", "text"}
    assert len(short.runs) == 1
