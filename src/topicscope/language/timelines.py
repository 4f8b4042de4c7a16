"""Since when does a model encode topics? Snapshots of one model, each measured against the same topics."""

from collections.abc import Sequence

from topicscope.ground import Engine, InputError, Progress, repeatable, serial, silent
from topicscope.language.assignment import Assignment
from topicscope.language.attention import attention_effect, matched_attention, tally_attention
from topicscope.language.configs import ModelPass
from topicscope.language.forward import word_vectors
from topicscope.language.models import LoadedModel, load_model
from topicscope.language.relations import TopicRelation
from topicscope.language.vocabulary import Vocabulary, whole_words, windows
from topicscope.language.word_measures import MEASURES
from topicscope.measure import Effect, Timeline, effect, embedding_effect, frequency_bins, matched_effect, pair_sums


def timeline_of(
    snapshots: Sequence[tuple[int, str]],
    texts: Sequence[str],
    assignment: Assignment,
    vocabulary: Vocabulary,
    measured: ModelPass | None = None,
    *,
    notes: Sequence[str] = (),
    device: str = "cpu",
    engine: Engine = serial,
    progress: Progress = silent,
) -> Timeline:
    """The timeline of snapshots that you have. The same topics and documents are resampled at all of them.

    Args:
        snapshots: Step, and folder or hub id, of each snapshot.
        texts: The documents.
        assignment: Words and their topics.
        vocabulary: Whole words of the tokenizer.
        measured: Windows, resamples and seed; None: the default.
        notes: Sentences that the timeline begins with.
        device: 'cpu' or 'cuda'.
        engine: Runs the passes over the text.
        progress: Called as progress(phase, done, total, note).

    Returns:
        The timeline.

    Raises:
        InputError: A snapshot cannot be loaded, or has another tokenizer.

    Example:
        See `timeline`.
    """
    measured = measured or ModelPass()
    effects: dict[str, dict[int, Effect | None]] = {}
    with repeatable():
        for number, (step, name) in enumerate(snapshots):
            progress("probing snapshots", number, len(snapshots), f"step {step}")
            loaded = load_model(name, device)
            if number and whole_words(loaded.tokenizer, ()).fingerprint != vocabulary.fingerprint:
                raise InputError(
                    f"{name} has a different tokenizer from the first snapshot; a timeline is of one model"
                )
            for measure, found in effects_of(loaded, texts, assignment, vocabulary, measured, engine).items():
                effects.setdefault(measure, {})[step] = found
    return Timeline.of(effects, notes)


def effects_of(
    loaded: LoadedModel,
    texts: Sequence[str],
    assignment: Assignment,
    vocabulary: Vocabulary,
    measured: ModelPass,
    engine: Engine = serial,
) -> dict[str, Effect | None]:
    resamples, seed = measured.bootstrap, measured.seed
    raw = word_vectors(loaded.model, assignment.token, layer=measured.embedding == "layer")
    bins = frequency_bins(assignment.frequency) if measured.matched else None
    effects: dict[str, Effect | None] = {}
    for name in ("cosine", "dot"):
        sums = pair_sums(MEASURES[name](raw), assignment.membership, bins)
        effects[name] = embedding_effect([sums], resamples=resamples, seed=seed)
        if measured.matched and name == "cosine":
            effects["cosine_matched"] = matched_effect(sums, resamples=resamples, seed=seed)
    relation = TopicRelation(assignment, len(loaded.tokenizer), 0, seed, loaded.device)
    pieces = windows(loaded, vocabulary, texts, measured.windows)
    parts = tally_attention(loaded, pieces, [relation], bootstrap=resamples, seed=seed, engine=engine)
    for name, (tally,) in parts.items():
        prefix = "attention" if name in ("encoder", next(iter(parts))) else f"attention ({name})"
        effects[prefix] = attention_effect(tally)
        if measured.matched and prefix == "attention":
            effects["attention_matched"] = effect(*matched_attention(tally))
        for layer, count in enumerate(tally.heads):
            start = sum(tally.heads[:layer])
            effects[f"{prefix}.{layer}"] = attention_effect(tally, range(start, start + count))
    return effects
