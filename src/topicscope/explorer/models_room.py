"""The room of models: a probe, topics or words to look into; one model of several; the topics of a word."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from topicscope import pages
from topicscope.explorer.folder_views import folder_view, read_again
from topicscope.explorer.views import View
from topicscope.explorer.workspace import Place, place_of
from topicscope.ground import InputError, load_settings, refuse

FIRST = ("probe-forest", "probe-heads", "probe-states", "topic-map", "probe-documents")
"""How the names of figures begin whose sections come first; the others follow in the order of the page."""
MOST_TOPICS = 5  # of a word that are listed
LEAST_SHARE = 0.01  # of a word's occurrences that a topic has to have
LONGEST_WORD = 100  # characters


@dataclass(frozen=True)
class Fitted:
    """Topics of a folder, and the models of a probe that they were fitted for: those with one tokenizer."""

    topics: Any
    models: Mapping[str, str]  # by name: how tables call them; empty where the folder is no probe

    @property
    def of(self) -> str:
        return ", ".join(self.models.values())


def models_view(place: Place, model: int | None = None) -> View:
    """What the page of the folder has, with the fitted topics of a probe. `model`: one of a probe's, by its number."""
    if place.kind != "probe":
        return folder_view(place)
    probe, name = read_again(place), model_of(place, model)
    mine = probe if name is None else probe.of_model(name)
    whole: list[pages.Section] = [*mine.sections(), *topic_sections(place, name)]
    title = f"topicscope probe: {place.name}" + ("" if name is None else f", {probe.models[name]}")
    return View(title, sorted(whole, key=rank), probe.intro() if name is None else mine.summary())


def model_of(place: Place, number: int | None) -> str | None:
    """The name of one of a probe's models; None where all are asked for."""
    names = list(read_again(place).models) if place.kind == "probe" else []
    refuse((number is not None and not 0 <= number < len(names), "there is no such model in this folder"))
    return None if number is None else names[number]


def rank(section: pages.Section) -> int:
    found = [FIRST.index(start) for figure in section.figures for start in FIRST if figure.name.startswith(start)]
    return min(found, default=len(FIRST))


def topic_sections(place: Place, model: str | None) -> list[pages.Section]:
    """The map and the words of topics that were fitted for the probe; where they cannot be read, the reason."""
    try:
        found = fitted(place, model)
    except InputError as error:
        return [pages.Section("Topic map", f"The topics of this probe cannot be read: {error}.")]
    several = len(read_again(place).models) > 1
    return [
        named(section, one.of, number) if several else section
        for number, one in enumerate(found, start=1)
        for section in one.topics.sections()
    ]


def named(section: pages.Section, models: str, number: int) -> pages.Section:
    """The same section with the names of its models; figures of several models have different names."""
    drawn = [
        replace(figure, name=f"{figure.name}-{number}", title=f"{models}: {figure.title}") for figure in section.figures
    ]
    return replace(section, title=f"{models}: {section.title}", figures=drawn)


def fitted(place: Place, model: str | None = None) -> list[Fitted]:
    """Topics of a folder: itself, or those that a probe has inside, of one model or of all. Links are not followed."""
    if place.kind == "topics":
        return [Fitted(read_again(place), {})]
    if place.kind != "probe":
        return []
    paths = sorted(path for path in place.path.glob("topics-*") if path.is_dir() and not path.is_symlink())
    inside = [place_of(path, place.path) for path in paths]
    kept = [one for one in inside if one is not None and one.kind == "topics"]
    probe, read = read_again(place), [read_again(one) for one in kept]
    fitted_for = {
        str(load_settings(one.path / "config.yaml", own=True).get("tokenizer")): i for i, one in enumerate(kept)
    }
    models: list[dict[str, str]] = [{} for _ in kept]
    for name, short in probe.models.items():
        number = fitted_for.get(name, next((i for i, topics in enumerate(read) if uses(probe, name, topics)), None))
        if number is not None:
            models[number][name] = short
    return [Fitted(*one) for one in zip(read, models, strict=True) if model is None or model in one[1]]


def uses(probe: Any, model: str, topics: Any) -> bool:
    """Whether a model that shares the tokenizer of another one was probed with these topics: by their names."""
    rows = [row for row in probe.topics if row.model == model]
    return all(row.topic < len(topics) and row.name == " ".join(topics.top_words(row.topic, 3)) for row in rows)


def model_names(place: Place) -> list[str]:
    return list(read_again(place).models.values()) if place.kind == "probe" else []


def topics_of_word(place: Place, word: str, model: int | None = None) -> dict[str, Any]:
    """The topics of a word, for each tokenizer of a probe's models or for one model alone."""
    text = word.strip()[:LONGEST_WORD]
    found = fitted(place, model_of(place, model))
    return {"word": text, "answers": [{"models": one.of, **word_in(one.topics, text)} for one in found]}


def word_in(topics: Any, text: str) -> dict[str, Any]:
    """P(topic | word) by the topics' shares, P(word | topic), and the word's place among the words of the topic."""
    spellings = {spelling: number for number, spelling in enumerate(topics.words)}
    number = next((spellings[one] for one in (text, text.lower()) if one in spellings), None)
    if number is None:
        return {"word": text, "topics": []}
    inside = topics.probability[:, number]
    joint = topics.shares * inside
    order = np.argsort(-joint, kind="stable")[:MOST_TOPICS]
    found = [
        {
            "topic": int(k),
            "name": " ".join(topics.top_words(k, 3)),
            "share": float(joint[k] / joint.sum()),
            "probability": float(inside[k]),
            "place": 1 + int((topics.probability[k] > inside[k]).sum()),
        }
        for k in order
        if joint[k] > LEAST_SHARE * joint.sum()
    ]
    return {"word": topics.words[number], "topics": found}
