"""A model for each way to be wrong, with weights set by hand: the verdict is right in at least 19 of 20 of each."""

from typing import Any

import pytest

from tests.language.planted import HEAD, planted
from topicscope.language import Measurement, ModelVerdict, probe_model, probing, states
from topicscope.language.probe_rows import topical_heads

SEEDS = 20
WHERE = {  # by what was planted: the right answers on embeddings, hidden states and attention
    "nowhere": ("no", "no", "no"),
    "topics": ("yes", "yes", "no"),
    "frequency": ("no", "no", "no"),
    "cooccurrence": ("no", "no", "no"),
    "head": ("no", "no", "yes"),
    "states": ("no", "yes", "no"),
}


def why(kind: str, verdict: ModelVerdict) -> bool:
    """Whether the control that was planted is the one that says no, or the place that was planted is found."""
    controls = verdict.embeddings.controls
    if kind == "frequency":
        return controls["frequency"] == "no" and controls["chance"] == controls["fresh_weights"] == "yes"
    if kind == "cooccurrence":
        return controls["cooccurrence"] == "no" and controls["chance"] == controls["fresh_weights"] == "yes"
    if kind == "states":
        return "(encoder layer 1)" in verdict.states.sentence
    return kind in ("head", "topics") or controls["chance"] == "no"


@pytest.mark.parametrize("kind", WHERE)
def test_the_verdict_finds_what_was_planted(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(states, "targets_of", lambda *_: None)  # no verdict asks for topics of documents
    monkeypatch.setattr(probing, "document_losses", lambda *_: ({}, ""))
    errors = []
    for seed in range(SEEDS):
        loaded, topics, texts = planted(kind, seed)
        settings: dict[str, Any] = {"bootstrap": 200, "shuffles": 200, "ablation": False, "show_documents": 0}
        found = probe_model(loaded, texts, topics, Measurement(seed=seed, **settings))
        (verdict,) = found.verdicts
        answers = tuple(answer.answer for answer in verdict.answers.values())
        heads = [(head.layer, head.head) for head in topical_heads(found.heads, "encoder")]
        found_first = kind != "head" or heads[:1] == [(0, HEAD)]
        if answers != WHERE[kind] or not why(kind, verdict) or not found_first:
            errors.append((seed, answers, heads, verdict.sentences))
    assert len(errors) <= 1, errors
