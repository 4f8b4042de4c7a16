"""When topic structure appears in training: checkpoints of one model, probed against one fixed set of topics.

found = timeline([(0, "runs/x/snapshots/step-000000"), ...], texts, topics)
found["cosine"][100].difference, found["attention.0"][100].interval
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from topicscope.ground import Engine, InputError, repeatable
from topicscope.language.assignment import Assignment
from topicscope.language.attention import tally_attention, windows
from topicscope.language.effects import attention_effect, matched_attention_effect
from topicscope.language.models import HUB_ID, LoadedModel, load_model, word_vectors
from topicscope.language.probing import Settings, unit
from topicscope.language.relations import TopicRelation
from topicscope.language.vocabulary import Vocabulary, whole_words
from topicscope.measure import Effect, embedding_effect, frequency_bins, matched_effect, pair_sums

STEP = re.compile(r"(?:step|checkpoint|global_step|iter)[-_]?(\d+)", re.IGNORECASE)
"""How checkpoints are named by their step."""

Effects = dict[str, dict[int, Effect | None]]
"""By measure ('cosine', 'dot', 'attention', 'attention.0' of layer 0, ...) and step."""


def find_checkpoints(names: Sequence[str]) -> list[tuple[int, str]]:
    """Steps and models: a folder with checkpoints in it, model folders, or hub ids with a revision (OWNER/NAME@step1000), in order of the steps."""
    found: list[tuple[int, str]] = []
    for name in names:
        path = Path(name)
        listed = [p for place in (path, path / "snapshots") if place.is_dir() for p in place.iterdir()]
        inside = [p for p in listed if STEP.search(p.name) and (p / "config.json").is_file()]
        if not path.exists() and not HUB_ID.fullmatch(name):
            raise InputError(
                f"no such folder: {name} (snapshots of 'topicscope pretrain', model folders, or hub ids such as OWNER/NAME@step1000)"
            )
        if path.is_dir() and not inside and not (path / "config.json").is_file():
            if (path / "run-000").is_dir():
                raise InputError(f"{name} holds several runs; name one of them, for example {path / 'run-000'}")
            raise InputError(
                f"{name} holds no checkpoints (folders such as step-000100 or checkpoint-500, each with config.json and model.safetensors)"
            )
        for model in [str(p) for p in inside] or [name]:
            match = list(STEP.finditer(model.rsplit("/", 1)[-1]))
            if not match:
                known = "" if Path(model).exists() else "no such folder, and "
                raise InputError(
                    f"{model}: {known}no step in its name; expected one such as step-100, checkpoint-500 or NAME@step1000"
                )
            found.append((int(match[-1].group(1)), model))
    steps = [step for step, _ in found]
    for step in steps:
        if steps.count(step) > 1:
            raise InputError(f"step {step} is there more than once; name the checkpoints of one run")
    if len(found) < 2:
        raise InputError(f"a timeline needs at least two checkpoints; found {len(found)}")
    return sorted(found)


def timeline(
    checkpoints: Sequence[tuple[int, str]],
    texts: Sequence[str],
    assignment: Assignment,
    vocabulary: Vocabulary,
    settings: Settings | None = None,
    device: str = "cpu",
    progress: Callable[[int, int], None] | None = None,
    engine: Engine | None = None,
) -> Effects:
    """Every checkpoint is loaded, measured and let go. The same topics and documents are resampled at all of them."""
    settings = settings or Settings()
    found: Effects = {}
    with repeatable():
        for number, (step, name) in enumerate(checkpoints):
            loaded = load_model(name, device)
            if number and whole_words(loaded.tokenizer, ()).fingerprint != vocabulary.fingerprint:
                raise InputError(f"{name} has another tokenizer than the first checkpoint; a timeline is of one model")
            for measure, effect in effects_of(loaded, texts, assignment, vocabulary, settings, engine).items():
                found.setdefault(measure, {})[step] = effect
            if progress is not None:
                progress(number + 1, len(checkpoints))
    return found


def effects_of(
    loaded: LoadedModel,
    texts: Sequence[str],
    assignment: Assignment,
    vocabulary: Vocabulary,
    settings: Settings,
    engine: Engine | None = None,
) -> dict[str, Effect | None]:
    raw = word_vectors(loaded, assignment.token, layer=settings.embedding == "layer")
    bins = frequency_bins(assignment.frequency) if settings.matched else None
    found: dict[str, Effect | None] = {}
    for name, vectors in (("cosine", unit(raw)), ("dot", raw)):
        sums = pair_sums(vectors, assignment.membership, bins)
        found[name] = embedding_effect([sums], settings.bootstrap, settings.seed, None, matched=False)
        if settings.matched and name == "cosine":
            found["cosine_matched"] = matched_effect(sums, settings.bootstrap, settings.seed)
    relation = TopicRelation(assignment, len(loaded.tokenizer), 0, settings.seed, device=loaded.device)
    pieces = windows(loaded, vocabulary, texts, settings.windows, settings.window_length)
    parts = tally_attention(loaded, pieces, [relation], bootstrap=settings.bootstrap, seed=settings.seed, engine=engine)
    for part, (heads, tallies) in parts.items():
        prefix = "attention" if part in ("encoder", next(iter(parts))) else f"attention ({part})"
        found[prefix] = attention_effect(tallies[0])
        if settings.matched and prefix == "attention":
            found["attention_matched"] = matched_attention_effect(tallies[0])
        start = 0
        for layer, count in enumerate(heads):
            found[f"{prefix}.{layer}"] = attention_effect(tallies[0], range(start, start + count))
            start += count
    return found
