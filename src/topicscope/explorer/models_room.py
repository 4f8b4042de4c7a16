"""The room of models: a probe, topics or words to look into; one model of several; the topics of a word."""

from typing import Any

import numpy as np

from topicscope import figures
from topicscope.explorer.folder_views import folder_view, read_again
from topicscope.explorer.views import View
from topicscope.explorer.workspace import Place, place_of
from topicscope.ground import InputError, refuse

FIRST = ("probe-forest", "probe-heads", "probe-states", "topic-map", "probe-documents")
"""How the names of figures begin whose sections come first; the others follow in the order of the page."""
MOST_TOPICS = 5  # of a word that are listed
LEAST_SHARE = 0.01  # of a word's occurrences that a topic has to have
LONGEST_WORD = 100  # characters


def models_view(place: Place, model: int | None = None) -> View:
    """What the page of the folder has, with the fitted topics of a probe. `model`: one of a probe's, by its number."""
    if place.kind != "probe":
        return folder_view(place)
    probe = read_again(place)
    names = list(probe.models)
    refuse((model is not None and not 0 <= model < len(names), "there is no such model in this probe"))
    mine = probe if model is None else probe.of_model(names[model])
    whole: list[figures.Section] = [*mine.sections(), *topic_sections(place)]
    title = f"topicscope probe: {place.name}" + ("" if model is None else f", {probe.models[names[model]]}")
    return View(title, sorted(whole, key=rank), probe.intro() if model is None else mine.summary())


def rank(section: figures.Section) -> int:
    found = [FIRST.index(start) for figure in section.figures for start in FIRST if figure.name.startswith(start)]
    return min(found, default=len(FIRST))


def topic_sections(place: Place) -> list[figures.Section]:
    """The map and the words of topics that were fitted for the probe; where they cannot be read, the reason."""
    try:
        return [section for topics in fitted(place) for section in topics.sections()]
    except InputError as error:
        return [figures.Section("Topic map", f"The topics of this probe cannot be read: {error}.")]


def fitted(place: Place) -> list[Any]:
    """Topics of a folder: itself, or those that a probe has inside. Links are not followed."""
    if place.kind == "topics":
        return [read_again(place)]
    paths = sorted(path for path in place.path.glob("topics-*") if path.is_dir() and not path.is_symlink())
    inside = [place_of(path, place.path) for path in paths]
    return [read_again(one) for one in inside if one is not None and one.kind == "topics"]


def model_names(place: Place) -> list[str]:
    return list(read_again(place).models.values()) if place.kind == "probe" else []


def topics_of_word(place: Place, word: str) -> dict[str, Any]:
    """The topics of a word: P(topic | word) by the topics' shares, P(word | topic), and its place among the words."""
    text = word.strip()[:LONGEST_WORD]
    every = fitted(place)
    for topics in every:
        spellings = {spelling: number for number, spelling in enumerate(topics.words)}
        number = next((spellings[one] for one in (text, text.lower()) if one in spellings), None)
        if number is None:
            continue
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
        return {"word": topics.words[number], "topics": found, "fitted": True}
    return {"word": text, "topics": [], "fitted": bool(every)}
