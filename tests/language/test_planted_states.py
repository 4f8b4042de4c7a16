"""Hidden states that are planted: topics of words in one layer, of documents in another; and what is said without."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from tests.language import tiny
from tests.language.samples import assignment, texts
from topicscope.language import Assignment, LoadedModel, Measurement, StateRow, checked, probe_model, whole_words

TOKENIZER = tiny.tokenizer("wordpiece")
VOCABULARY = whole_words(TOKENIZER, ["the"])
BARE = Measurement(bootstrap=5, shuffles=0, random=False, cooccurrence=False)


class Planted(torch.nn.Module):
    """A model of four layers of states: words and noise in all, topics of words in layer 1, of documents in layer 2.

    In layer 3 every document has a vector of its own, larger than all else.
    """

    def __init__(self, a: Assignment, seed: int, size: int = 24) -> None:
        super().__init__()
        rng = np.random.default_rng(seed)
        self.config = SimpleNamespace(is_encoder_decoder=False, model_type="bert", max_position_embeddings=64)
        self.device, self.size, self.seed = torch.device("cpu"), size, seed
        self.word = torch.from_numpy(rng.normal(size=(len(TOKENIZER), size)))
        topic = np.full(len(TOKENIZER), a.membership.topics)
        topic[a.token[a.membership.word]] = a.membership.topic
        self.topic, self.topics = torch.from_numpy(topic), a.membership.topics
        self.vector = torch.from_numpy(np.concatenate([rng.normal(size=(self.topics, size)), np.zeros((1, size))]))

    def get_output_embeddings(self) -> None:
        """It predicts no words."""

    def get_input_embeddings(self) -> Any:
        return SimpleNamespace(weight=self.word)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor, **_: Any) -> Any:
        noise = torch.Generator().manual_seed(int(input_ids.sum()) + self.seed)
        count, length = input_ids.shape
        layers = [
            self.word[input_ids] + torch.randn(count, length, self.size, generator=noise, dtype=torch.float64)
            for _ in range(4)
        ]
        layers[1] += self.vector[self.topic[input_ids]]
        shares = torch.nn.functional.one_hot(self.topic[input_ids], self.topics + 1).double().mean(1)
        layers[2] += 3 * (shares @ self.vector)[:, None]
        layers[3] += 5 * torch.randn(count, 1, self.size, generator=noise, dtype=torch.float64)
        weights = torch.full((count, 1, length, length), 1 / length, dtype=torch.float64)
        return SimpleNamespace(attentions=(weights,), hidden_states=tuple(layers))


def planted(seed: int, documents: int = 60) -> list[StateRow]:
    a = assignment(VOCABULARY, several=False)
    loaded = LoadedModel("planted", Planted(a, seed), TOKENIZER, 40)
    measurement = replace(BARE, bootstrap=200, shuffles=400, seed=seed)
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
    scores = [row.mixture for row in planted(1, 150)]
    r2 = [score.mixture_r2 for score in scores if score is not None and score.mixture_r2 is not None]
    assert len(r2) == 4
    assert r2[2] > 0.95 > r2[0] > 0.3 > r2[3]  # words alone say a part of it; one large vector per document hides them
    single = [score.by_position["2/4"] for score in scores if score is not None]
    assert single[2] is not None
    assert single[0] is not None
    assert single[2] > 0.5 > single[0]
    for score in scores:
        assert score is not None
        assert score.shuffled_r2 is not None
        assert score.shuffled_r2 < 0.05
        assert score.bag_of_words_r2 is not None
        assert score.bag_of_words_r2 > 0.7
        assert list(score.by_position) == ["1/4", "2/4", "3/4", "4/4"]


def test_few_documents_and_models_without_states_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded, a = (
        checked("encoder", tiny.model("encoder", len(TOKENIZER)), TOKENIZER),
        assignment(VOCABULARY, several=False),
    )
    few = probe_model(loaded, texts(6), a, BARE, vocabulary=VOCABULARY)
    assert few.states[0].mixture is None
    assert [note for note in few.notes if not note.startswith("warning: document ")] == [
        "hidden states: fewer than 10 documents have words of topics, too few to predict mixtures; give more documents",
        NO_HEAD,
    ]
    without = Planted(a, 0)
    whole = without.forward

    def stripped(**inputs: Any) -> Any:
        output = whole(**inputs)
        output.hidden_states = tuple(layer[:, :2] for layer in output.hidden_states)
        return output

    monkeypatch.setattr(without, "forward", stripped)
    none = probe_model(LoadedModel("planted", without, TOKENIZER, 40), texts(12), a, BARE, vocabulary=VOCABULARY)
    assert (none.states, [note for note in none.notes if not note.startswith("warning: document ")]) == (
        [],
        ["hidden states: this model returns none for each position, so they are not measured", NO_HEAD],
    )
