"""What language models and courses of runs may show, built by hand: cosines, probes, norms, phases, timelines."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tests.paper.samples_sandbox import CONFIG
from tests.pretraining import small
from topicscope.language import CooccurrenceRow, HeadRow, PairContrast, Probe, ProbeRow, TopicRow, WordMap
from topicscope.measure import Effect, Timeline
from topicscope.paper import figure4, language_models, made_up, two_stage
from topicscope.paper.made_up import Curves
from topicscope.paper.two_stage import EMBEDDING, EPS, LOSS, LR, SCALE

NINE = tuple(word for group in language_models.GROUPS for word in group)


def word_map(model: str, inside: float, between: float, pieces: Sequence[int] = (1,) * 9) -> WordMap:
    """Nine words of three groups. Cosines with words of several pieces are the other way round."""
    group, whole = np.repeat([0, 1, 2], 3), np.array(pieces) == 1
    same = (group[:, None] == group) == (whole[:, None] & whole)
    cosine = np.where(same, inside, between)
    np.fill_diagonal(cosine, 1)
    return WordMap(model, NINE, tuple(group.tolist()), tuple(pieces), cosine)


def word_maps(inside: float = 0.6, between: float = 0.2, pieces: Sequence[int] = (1,) * 9) -> language_models.WordMaps:
    """Of a model whose tokenizer has all nine words, and of one that has these means and pieces."""
    maps = [word_map("models/bert-base", 0.5, 0.1), word_map("roberta", inside, between, pieces)]
    return language_models.WordMaps({words.model: words for words in maps}, {})


def small_word_maps(inside: float = 0.6, random: float = 0.1) -> language_models.WordMaps:
    """Of a small model, beside random weights of which the words of a group are nearer by this much."""
    found = language_models.WordMaps({"small-bert": word_map("small-bert", inside, 0.0)}, {})
    return replace(found, random={"small-bert": word_map("small-bert", random, 0.0)})


def effect(low: float, ratio: float | None = 1.3, p_value: float | None = 0.01) -> Effect:
    means = {"same": 0.4, "different": 0.3, "difference": 0.1}
    intervals = {"interval": (low, low + 0.2), "ratio_interval": (1.1, 1.5), "null_interval": (-0.01, 0.01)}
    return Effect(**means, **intervals, ratio=ratio, p_value=p_value)  # type: ignore[arg-type]


def about(model: str, variant: str, threshold: float) -> dict[str, Any]:
    names = {"model": model, "variant": variant, "threshold": threshold, "topics_per_word": "one", "words": 100}
    return names | {"topics": 10, "embedding": "matrix", "window": 128}


def probe_row(model: str, variant: str, threshold: float, **effects: Effect | None) -> ProbeRow:
    plain = {"cosine": effect(0.05), "dot": effect(0.05), "cosine_centred": None, "dot_centred": None}
    row = ProbeRow(**about(model, variant, threshold), embeddings=plain, attention=effect(0.05), parts={})
    return with_effects(row, effects)


def with_effects(row: ProbeRow, effects: dict[str, Effect | None]) -> ProbeRow:
    embeddings = row.embeddings | {name: effect for name, effect in effects.items() if name != "attention"}
    return replace(row, embeddings=embeddings, attention=effects.get("attention", row.attention))


def head_rows(model: str) -> list[HeadRow]:
    where: dict[str, Any] = {"model": model, "threshold": 0.0005, "topics_per_word": "one", "part": "encoder"}
    return [HeadRow(**where, layer=0, head=head, effect=effect(0.05, 1.2 + head)) for head in range(2)]


MODELS = ["models/bert-base", "roberta"]


THRESHOLDS = (0.0005, 0.001, 0.002)


def probed(number: int | None = None, **effects: Effect | None) -> language_models.Probed:
    places = list(itertools.product(MODELS, THRESHOLDS))
    rows = [probe_row(model, "trained", at, attention=effect(0.05, 1.4 - 100 * at)) for model, at in places]
    rows += [probe_row(model, "random", at, attention=effect(-0.1, 1.005)) for model, at in places]
    if number is not None:
        rows[number] = with_effects(rows[number], effects)
    heads = [row for model in MODELS for row in head_rows(model)]
    return language_models.Probed(Probe(rows, heads, [], []), {"models": MODELS, "corpus": ["text.txt"]})


SMALL = ["small-bert", "small-bart"]


def small_probed(number: int | None = None, decoder: Effect | None = None, **effects: Effect | None) -> Any:
    """Two small models at their known topics, then random weights; the last of each two has a decoder.

    `effects` replace those of row `number`, and `decoder` the attention of its decoder.
    """
    rows = [
        with_effects(probe_row(model, variant, 0.1), {"attention": effect(low, ratio)})
        for variant, low, ratio in (("trained", 0.05, 2.0), ("random", -0.1, 1.005))
        for model in SMALL
    ]
    for place in (1, 3):  # the encoder of an encoder-decoder shows nothing, and does not count
        row = rows[place]
        rows[place] = replace(row, parts={"encoder": effect(-0.3, 0.9), "decoder": row.attention, "cross": None})
        rows[place] = replace(rows[place], attention=effect(-0.3, 0.9))
    if number is not None:
        rows[number] = with_effects(rows[number], effects)
        if decoder is not None:
            rows[number] = replace(rows[number], parts=rows[number].parts | {"decoder": decoder})
    probe = Probe(rows, head_rows(SMALL[0]), [], [])
    return language_models.Probed(probe, {"models": SMALL, "corpus": [language_models.MADE_UP]}, known=True)


def weak_small(judged: Sequence[str]) -> dict[str, language_models.Probed]:
    found = {
        f"small models: {name}: {why}": small_probed(0, **{name: here})
        for name in judged
        for why, here in (
            ("interval from zero on", effect(0.0, 2.0)),
            ("as good as shuffled topics", effect(0.05, 2.0, p_value=0.051)),
            ("no shuffles", effect(0.05, 2.0, p_value=None)),
            ("no pairs", None),
        )
    }
    return found | {
        "small models: the decoder shows nothing": small_probed(1, decoder=effect(-0.1, 1.3)),
        "small models: a random decoder shows an effect": small_probed(3, decoder=effect(-0.1, 1.0101)),
        "small models: random weights show an effect": small_probed(2, attention=effect(-0.1, 0.9899)),
    }


def cooccurrence(
    same_topic: float | None = 0.45, margin: tuple[float, float] | None = (0.01, 0.15)
) -> language_models.Probed:
    """Table 2; the last row of the last model has this cosine and margin."""
    rows = []
    for model, threshold in itertools.product(MODELS, THRESHOLDS):
        last = (model, threshold) == (MODELS[-1], THRESHOLDS[-1])
        clear = PairContrast(0.5, 0.4, (0.3, 0.44), (0.06, 0.2), 30)
        cosine = PairContrast(same_topic, 0.4, (0.3, 0.44), margin, 30) if last else clear
        attention = PairContrast(0.006, 0.007, (0.006, 0.008), (-0.002, 0.0), 300)
        rows.append(CooccurrenceRow(**about(model, "trained", threshold), pairs=90, cosine=cosine, attention=attention))
    return language_models.Probed(Probe([], [], rows, []), {"models": MODELS, "corpus": ["text.txt"]})


def weak_ratios(judged: Sequence[str]) -> dict[str, language_models.Probed]:
    rising = probed(2, attention=effect(0.05, 1.36))
    made = {
        "ratio of one model rises": rising,
        "ratio of one model is level": probed(5, attention=effect(0.05, 1.35)),
        "ratio of the last threshold is undefined": probed(5, attention=effect(0.05, None)),
        "ratio of the first threshold is undefined": probed(3, attention=effect(0.05, None)),
        "a random model above 1": probed(11, attention=effect(-0.1, 1.0101)),
        "a random model below 1": probed(6, attention=effect(-0.1, 0.9899)),
        "a random model without attention": probed(7, attention=None),
    }
    for name in judged:
        ratio = {"ratio": 1.3} if name == "attention" else {}
        made |= {
            f"{name}: interval from zero on": probed(1, **{name: effect(0.0, **ratio)}),
            f"{name}: interval below zero": probed(4, **{name: effect(-0.1, **ratio)}),
            f"{name}: no interval": probed(1, **{name: replace(effect(0.1, **ratio), interval=None)}),
            f"{name}: no pairs": probed(4, **{name: None}),
        }
    return made


def small_bert(
    accuracy: float = 0.97, variant: str = "trained", **effects: Effect | None
) -> language_models.ProbedBert:
    rows = [
        probe_row("small BERT", "trained", 0.08),
        probe_row("small BERT", "random", 0.08, attention=effect(-0.1, 1.004), cosine=effect(-0.1, None)),
    ]
    place = 0 if variant == "trained" else 1
    rows[place] = with_effects(rows[place], effects)
    topic: dict[str, Any] = {"model": "small BERT", "threshold": 0.08, "topics_per_word": "one", "topic": 0}
    topic |= {"nearest": None, "nearest_cosine": None, "farthest": None, "farthest_cosine": None}
    topics = [TopicRow(**topic, name="kitchen", words=12, cosine=0.6)]
    falling = [3.0 - 0.01 * i for i in range(101)]
    return language_models.ProbedBert(Probe(rows, head_rows("small BERT"), [], topics), accuracy, falling, 12)


def weak_effects() -> dict[str, language_models.ProbedBert]:
    return {
        "cosine: not measured": small_bert(cosine=None),
        "cosine: no interval": small_bert(cosine=replace(effect(0.1), interval=None)),
        "cosine: no shuffles": small_bert(cosine=effect(0.05, p_value=None)),
        "random cosine: not measured": small_bert(variant="random", cosine=None),
        "random cosine: no interval": small_bert(variant="random", cosine=replace(effect(-0.1), interval=None)),
        "random attention: not measured": small_bert(variant="random", attention=None),
        **{
            f"{name}: {why}": small_bert(**{name: found})  # type: ignore[arg-type]
            for name in ("cosine", "dot", "attention")
            for why, found in (("interval from zero on", effect(0.0)), ("by chance", effect(0.05, p_value=0.05)))
        },
    }


def ramp(start: int, end: int, steps: int = 101) -> np.ndarray:
    """Near zero until `start`, then straight up to 1 at `end`."""
    return 1e-3 + np.clip((np.arange(steps) - start) / (end - start), 0, 1)


def norms(value: int = 0, key: int = 40, query: int = 45) -> figure4.Norms:
    """Norms that start to rise at these steps, and take 20 steps."""
    starts = {"value": value, "key": key, "query": query}
    return {f"norm_{part}": ramp(start, start + 20) for part, start in starts.items()}


def stage_settings(*nearest: figure4.Norms) -> figure4.StageNorms:
    """The five settings, three seeds each; of the first setting these runs."""
    names = list(figure4.SETTINGS)
    runs = {name: [norms(seed) for seed in range(3)] for name in names}
    return figure4.StageNorms(runs | ({names[0]: list(nearest)} if nearest else {}), CONFIG)


def curves(setting: str, late: int = 40, layers: int = 4, seed: int = 0, **norms: np.ndarray) -> Curves:
    metrics = {"loss": np.linspace(5, 3, 101)}
    for layer in range(layers):
        metrics |= {
            f"norm_key_{layer}": ramp(late, 60),
            f"norm_query_{layer}": ramp(late + 5, 70),
            f"norm_value_{layer}": ramp(0, 20),
            f"rotation_{layer}": np.linspace(0.5, 0, 101),
        }
    return Curves(setting, small.run_of(metrics | norms, seed))


def layer_starts(usual: Curves | None = None, **norms: np.ndarray) -> made_up.LayerRuns:
    near = [curves("near zero, a"), curves("near zero, b", 40, 4, 1, **norms)]
    return made_up.LayerRuns(near, [usual or curves("usual start", late=0)], False)


def point(phase: str, **more: Any) -> dict[str, Any]:
    made = {"phase": phase, "separation": 3.0, "start_separation": 3.0, "loss": 0.9, "contrast": 0.1}
    made |= {"steps_done": 100, "t50_value": 10.0, "t50_key": 30.0, "t50_query": None}
    return made | {"predicted_phase": phase, "predicted_by": "closed form", "predicted_separation": 3.0} | more


def swept(axes: dict[str, list[Any]], phase_at: Callable[[dict[str, Any]], str]) -> two_stage.Swept:
    places = [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]
    return two_stage.Swept(axes, [place | point(phase_at(place)) for place in places])


def stage_maps(phase_at: Callable[[dict[str, Any]], str]) -> two_stage.StageMaps:
    """Small maps. `phase_at`: the course of Adam with squared loss and trained embedding; all else is 'at once'."""

    def everywhere(place: dict[str, Any]) -> str:
        here = (place.get(LOSS), place.get(EMBEDDING))
        return phase_at(place) if here == ("squared", "trained") else "at once"

    axes: dict[str, list[Any]] = {LOSS: two_stage.LOSSES, EMBEDDING: two_stage.EMBEDDINGS}
    square: dict[str, list[Any]] = {LR: [1e-3, 1e-2], SCALE: [1e-2, 1e-1], "seed": [0]}
    line: dict[str, list[Any]] = {EPS: [1e-20, 1e-8], SCALE: [1e-3], "seed": [0]}
    maps = {"adam": swept(axes | square, everywhere), "sgd": swept(axes | square, lambda _: "at once")}
    flow = swept(axes | {LR: [0.1, 0.3], SCALE: [0.1]}, lambda _: "two-stage").rows
    return two_stage.StageMaps(maps, swept(axes | line, lambda _: "at once"), flow, {"steps": 100})


def at(lr: float, scale: float, phase: str, other: str = "at once") -> Callable[[dict[str, Any]], str]:
    return lambda place: phase if (place[LR], place[SCALE]) == (lr, scale) else other


def by_axis(axis: str, low: str, high: str, limit: float) -> Callable[[dict[str, Any]], str]:
    return lambda place: low if place[axis] < limit else high


def course(half: int) -> dict[int, Effect | None]:
    """A measure that rises from 0 to 1 and is half-way at this step; in resamples a little lower or higher there."""
    spread = np.array([0.98, 1.0, 1.02])
    return {0: at_height(0.0, np.zeros(3)), half: at_height(0.5, 0.5 * spread), 1000: at_height(1.0, np.ones(3))}


def at_height(y: float, resamples: np.ndarray) -> Effect:
    ends = (y - 0.01, y + 0.01)
    return Effect(same=y + 0.1, different=0.1, difference=y, ratio=None, interval=ends, resamples=resamples)


FLAT: dict[int, Effect | None] = {step: at_height(0.1, np.array([0.1, 0.1])) for step in (0, 10, 1000)}
"""A measure that is there from the start and never rises."""


def timeline_of(attention: dict[int, Effect | None], words: str = "embedding") -> Timeline:
    return Timeline.of({words: course(10), "attention": attention})


def sandbox_timelines(*attention: dict[int, Effect | None]) -> made_up.Timelines:
    given = [*attention, *[course(100)] * (3 - len(attention))]
    return made_up.Timelines([timeline_of(a) for a in given], None, {"seed": 0})


def with_value_late() -> figure4.StageNorms:
    return stage_settings(norms(0), norms(0), norms(40, 0, 0))


GOOD: dict[str, Callable[[], Any]] = {
    "figure3": word_maps,
    "figure4": stage_settings,
    "figure5": layer_starts,
    "table1": probed,
    "table2": cooccurrence,
    "table5": probed,
    "pipeline": small_bert,
    "timeline": sandbox_timelines,
    "two-stage": lambda: stage_maps(at(1e-3, 1e-2, "two-stage")),
}

BAD: dict[str, dict[str, Any]] = {
    "figure3": {
        "one model the other way round": word_maps(0.2, 0.6),
        "one model without difference": word_maps(0.3, 0.3),
        "whole tokens the other way round, pieces not": word_maps(0.2, 0.6, (1, 1, 2) * 3),
        "one model fails and another decides nothing": replace(
            word_maps(), maps=word_maps(0.2, 0.6).maps | {"x": word_map("x", 0.6, 0.2, (1, 2, 2) * 3)}
        ),
        "random weights show as much": small_word_maps(0.6, 0.6),
    },
    "figure4": {
        "interval reaches below 1": with_value_late(),
        "key first": stage_settings(*[norms(40, 0, 50)] * 3),
        "query first": stage_settings(*[norms(40, 50, 0)] * 3),
        "all at once": stage_settings(*[norms(10, 10, 10)] * 3),
        "one key never rises": stage_settings(norms(), norms(), norms() | {"norm_key": np.full(101, 0.1)}),
        "one value never rises": stage_settings(norms(), norms(), norms() | {"norm_value": np.full(101, 0.1)}),
    },
    "figure5": {
        "query of one layer of one run is first": layer_starts(norm_query_3=ramp(0, 15)),
        "key of one layer of one run is first": layer_starts(norm_key_0=ramp(0, 15)),
        "key starts with value": layer_starts(norm_key_2=ramp(0, 20)),
        "a key never rises": layer_starts(norm_key_1=np.full(101, 0.1)),
        "a query never rises": layer_starts(norm_query_1=np.full(101, 0.1)),
        "a value never rises": layer_starts(norm_value_1=np.full(101, 0.1)),
    },
    "table1": weak_ratios(("cosine", "dot", "attention")) | weak_small(("cosine", "dot", "attention")),
    "table2": {
        "one row below": cooccurrence(0.4, (-0.05, 0.05)),
        "one row whose interval begins at zero": cooccurrence(0.45, (0.0, 0.1)),
        "one row without pairs of a topic": cooccurrence(None, None),
        "one row without interval": cooccurrence(0.45, None),
    },
    "table5": weak_ratios(("attention",)) | weak_small(("attention",)),
    "pipeline": weak_effects()
    | {
        "one word in twenty too many in the wrong topic": small_bert(0.9499),
        "random attention above": small_bert(variant="random", attention=effect(-0.1, 1.0101)),
        "random attention below": small_bert(variant="random", attention=effect(-0.1, 0.9899)),
        "random cosine above zero": small_bert(variant="random", cosine=effect(0.001)),
        "random cosine below zero": small_bert(variant="random", cosine=effect(-0.201)),
    },
    "timeline": {
        "one run at the same time": sandbox_timelines(course(10)),
        "one run earlier": sandbox_timelines(course(100), course(5)),
        "the last run at the same time": sandbox_timelines(course(100), course(100), course(10)),
        "one attention never rises": sandbox_timelines(FLAT),
    },
    "two-stage": {
        "two-stage everywhere": stage_maps(lambda _: "two-stage"),
        "two-stage nowhere": stage_maps(lambda _: "at once"),
        "only the rate matters": stage_maps(by_axis(LR, "two-stage", "at once", 5e-3)),
        "only the scale matters": stage_maps(by_axis(SCALE, "two-stage", "at once", 5e-2)),
        "other courses diverge": stage_maps(at(1e-3, 1e-2, "two-stage", "diverged")),
        "other courses, none two-stage": stage_maps(at(1e-3, 1e-2, "never")),
    },
}

STILL: dict[str, dict[str, Any]] = {
    "figure4": {
        "other settings do not show it": replace(
            with_value_late(), settings=dict(reversed(with_value_late().settings.items()))
        )
    },
    "figure5": {
        "the usual start has another order": layer_starts(curves("usual start", late=0, norm_key_0=ramp(0, 5)))
    },
    "figure3": {
        "small models, random weights show less": small_word_maps(0.6, 0.59),
        "two whole tokens in every group": word_maps(0.6, 0.2, (1, 1, 2, 1, 3, 1, 2, 1, 1)),
    },
    "table1": {
        "a random model just inside": probed(8, attention=effect(-0.1, 1.0099)),
        "small models: one threshold, and an encoder that shows nothing": small_probed(),
        "small models: p just at the limit": small_probed(0, cosine=effect(0.05, 2.0, p_value=0.05)),
    },
    "table2": {"just above zero": cooccurrence(0.45, (0.0001, 0.1))},
    "table5": {
        "no effect in the cosine": probed(1, cosine=effect(-0.1)),
        "no pairs for the dot product": probed(2, dot=None),
        "small models: no effect in the cosine": small_probed(0, cosine=effect(-0.1)),
    },
    "pipeline": {
        "exactly 95%": small_bert(0.95),
        "p just below": small_bert(cosine=effect(0.05, p_value=0.049)),
        "random cosine from zero on": small_bert(variant="random", cosine=effect(0.0)),
        "random cosine up to zero": small_bert(variant="random", cosine=effect(-0.2)),
    },
    "two-stage": {
        "some diverge": stage_maps(lambda place: at(1e-2, 1e-1, "diverged", at(1e-3, 1e-2, "two-stage")(place))(place))
    },
}

UNDECIDED: dict[str, dict[str, Any]] = {
    "figure3": {
        "six of nine words are no whole tokens": word_maps(0.6, 0.2, (1, 2, 2) * 3),
        "one group has a single whole token": word_maps(0.6, 0.2, (1, 1, 1, 1, 1, 1, 1, 2, 3)),
        "no word is a whole token": word_maps(0.6, 0.2, (2,) * 9),
    }
}
