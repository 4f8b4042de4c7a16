"""Made-up texts, and transformers trained on them or on the user's text: the two stages (figure5), the timeline."""

from __future__ import annotations

import itertools
import json
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from topicscope import language, measure as measures, pages, pretraining, training
from topicscope.ground import Stream, generator, merged, one_thread
from topicscope.measure import layer_names
from topicscope.paper.experiment import LANGUAGE, Context, Experiment, Number, Outcome, train_many, verdict
from topicscope.world import Dirichlet, TopicModel

DOCUMENTS, LENGTH = 3000, 48
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
SENTENCE, SENTENCES = 8, 4  # words of a sentence, which has one topic; sentences of a document
LENT = 3  # the last words of each topic belong to the next one too, and are half as likely there
PAIRS_PER_TOPIC, PAIR_CHANCE = 2, 0.6  # fixed pairs across topics; how often the first word is followed by the second


def word_lists() -> dict[str, list[str]]:
    return json.loads((resources.files("topicscope.paper") / "data" / "word-lists.json").read_text(encoding="utf-8"))


def made_up_texts(seed: int = 0) -> list[str]:
    """Three thousand short texts in words of twelve topics (animals, music, ...), to try things on without a corpus.

    Args:
        seed: Seed of the random draws.

    Returns:
        One string per text: 32 words in four sentences, each of one topic.

    Example:
        >>> texts = made_up_texts()
        >>> len(texts), len(texts[0].split())
        (3000, 32)
    """
    return sample_language(word_lists(), seed).texts


def sample_texts(lists: dict[str, list[str]], seed: int) -> list[str]:
    words = ["", *itertools.chain(*lists.values())]
    model = TopicModel(len(lists), len(next(iter(lists.values()))))
    documents = Dirichlet(length=LENGTH).sample(model, DOCUMENTS, generator(seed, Stream.TRAIN_DOCUMENTS)).finite()
    return [" ".join(words[i] for i in row) for row in documents.words.tolist()]


@dataclass(frozen=True)
class MadeUpLanguage:
    """Texts and what they were made from. Words are numbered topic by topic, as the lists have them."""

    texts: list[str]
    words: tuple[str, ...]
    names: tuple[str, ...]  # of the topics
    probability: Float[np.ndarray, "K W"]  # of each word in each topic, before pairs are put in
    pairs: dict[int, int]  # the second word of each fixed pair, by the first; never of one topic
    document_topics: Float[np.ndarray, "D K"]

    def topics(self, tokenizer: Any) -> language.Topics:
        """The known topics, in the form of fitted ones, with the pairs that stand together most often in the texts."""
        vocabulary = language.whole_words(tokenizer)
        place = [self.words.index(word) for word in vocabulary.words]
        number = {word: i for i, word in enumerate(vocabulary.words)}
        documents = [np.array([number[word] for word in text.split()]) for text in self.texts]
        lengths = np.array([len(document) for document in documents])
        return language.Topics(
            words=tuple(vocabulary.words),
            token=vocabulary.token,
            probability=self.probability[:, place],
            frequency=np.bincount(np.concatenate(documents), minlength=len(place)).astype(float),
            document_topics=self.document_topics.astype(np.float32),
            document_lengths=lengths,
            cooccurring=language.top_pairs(documents, len(place), language.PAIRS)[0],
            vocabulary_size=vocabulary.size,
            fingerprint=vocabulary.fingerprint,
            fit=language.TopicFit(
                backend="known",
                topics=len(self.names),
                documents=len(documents),
                tokens=int(lengths.sum()),
                coherence=[0.0] * len(self.names),
                iterations=0,
                seed=0,
                min_documents=0,
                log_likelihood=[],
                corpus="",
            ),
        )


def topic_words(topics: int, size: int) -> Float[np.ndarray, "K W"]:
    """Of each word in each topic: its own, the r-th in proportion to r^-.1, and the last of the topic before."""
    own = np.arange(1, size + 1) ** -0.1
    table = np.zeros((topics, topics * size))
    for topic in range(topics):
        end = (topic + 1) * size
        table[topic, topic * size : end] = own
        table[(topic + 1) % topics, end - LENT : end] = own[-LENT:] / 2
    return table / table.sum(1, keepdims=True)


def fixed_pairs(topics: int, size: int) -> dict[int, int]:
    """Of likely words: the first and the third of a topic have the second and the fourth of others as partners."""
    return {
        topic * size + 2 * number: (topic + 3 + 2 * number) % topics * size + 2 * number + 1
        for topic in range(topics)
        for number in range(PAIRS_PER_TOPIC)
    }


def sample_language(lists: dict[str, list[str]], seed: int) -> MadeUpLanguage:
    """Each sentence has a topic of its document; in it the second word of a pair often follows the first."""
    draw = generator(seed, Stream.MADE_UP_TEXTS)
    topics, size, length = len(lists), len(next(iter(lists.values()))), SENTENCE * SENTENCES
    probability, pairs = topic_words(topics, size), fixed_pairs(topics, size)
    mixture = draw.dirichlet(np.ones(topics), size=DOCUMENTS)
    topic = np.repeat(draws(mixture[:, None, :], draw.random((DOCUMENTS, SENTENCES))), SENTENCE, axis=1)
    words = draws(probability[topic], draw.random((DOCUMENTS, length)))
    partner = np.full(topics * size, -1)
    partner[list(pairs)] = list(pairs.values())
    chance = draw.random((DOCUMENTS, length))
    for place in range(length - 1):
        following = np.where(chance[:, place] < PAIR_CHANCE, partner[words[:, place]], -1)
        words[:, place + 1] = np.where(following >= 0, following, words[:, place + 1])
    names = tuple(itertools.chain(*lists.values()))
    texts = [" ".join(names[i] for i in row) for row in words.tolist()]
    return MadeUpLanguage(texts, names, tuple(lists), probability, pairs, mixture)


def draws(probability: Float[np.ndarray, "D N K"], uniform: Float[np.ndarray, "D N"]) -> Int[np.ndarray, "D N"]:
    chosen = (uniform[..., None] >= probability.cumsum(-1)).sum(-1)
    return np.minimum(chosen, probability.shape[-1] - 1)  # rounding may end the sum below 1


def build_tokenizer(lists: dict[str, list[str]]) -> Any:
    import transformers
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    vocabulary = {word: i for i, word in enumerate([*SPECIAL, "a", *itertools.chain(*lists.values())])}
    built = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    built.normalizer, built.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    built.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = {f"{token[1:-1].lower()}_token": token for token in SPECIAL}
    build: Any = transformers.PreTrainedTokenizerFast
    return build(tokenizer_object=built, model_max_length=LENGTH + 2, **names)


ARCHITECTURES = ("bert", "albert", "bart", "electra", "roberta")
GROUP = "small models"  # of the experiments that share the training: they run in one process, one after another
# Attention of an encoder-decoder that is judged: so small an encoder is hardly used; it is shown in the tables.
DECODED = "decoder"
TRAINING_STEPS = {"quick": 300, "full": 1500}

SETTINGS: dict[str, object] = {
    "text": {"corpus": ["(made-up texts)"]},
    "snapshots": "none",
    "checkpoint_every": None,
    "held_out": {"share": 0.0},
    "batch_size": 32,
    "micro_batch": 32,
    "length": 34,  # tokens of a document
    "masking": {"p_mask": 0.3},
    "optimizer": {"lr": 0.004},
    "device": "cpu",
    "model": {"layers": 1, "heads": 4, "dim": 64, "feedforward": 128, "dropout": 0.0, "init_scale": "usual"},
}


@dataclass(frozen=True)
class SmallModels:
    models: tuple[language.LoadedModel, ...]
    made_up: MadeUpLanguage
    topics: language.Topics
    losses: dict[str, tuple[float, float]]  # by model: at the first step, and the mean of the last 50


@lru_cache(maxsize=1)
def small_models(context: Context) -> SmallModels:
    """Trained once per process; every random draw follows from the seed, so that it is the same whenever it is done."""
    lists = word_lists()
    made_up, tokenizer = sample_language(lists, context.seed), build_tokenizer(lists)
    models, losses = [], {}
    for number, architecture in enumerate(ARCHITECTURES):
        # ALBERT's embeddings pass through one more matrix, and it learns later
        steps = round(TRAINING_STEPS[context.scale] * (1.6 if architecture == "albert" else 1))
        # another seed for each: ELECTRA's generator would else have the very weights of BERT
        own = {"model": {"architecture": architecture}, "steps": steps, "seed": 1000 * context.seed + number}
        config = pretraining.PretrainConfig.of(merged(SETTINGS, own))
        run = pretraining.pretrain(config, texts=made_up.texts, tokenizer=tokenizer)
        name = f"small-{architecture}"
        models.append(language.checked(name, run.model.base_model, tokenizer))
        losses[name] = (float(run.results.first_loss or "nan"), float(run.results.loss or "nan"))
    return SmallModels(tuple(models), made_up, made_up.topics(tokenizer), losses)


def probe_small(context: Context, words: int | None = None, **settings: Any) -> language.Probe:
    """The probes of all five at their known topics: of each topic all words, or so many of the likeliest."""
    small = small_models(context)
    all_words = len(small.made_up.words) // len(small.made_up.names) + LENT  # its own, and those that another lends
    # the share of the vocabulary at which each topic keeps so many words, however the product is rounded
    threshold = ((words or all_words) + 0.5) / small.topics.vocabulary_size
    measurement = language.Measurement(thresholds=(threshold,), seed=context.seed, ablation=False, **settings)
    texts = small.made_up.texts[: context.pick(150, 1000)]
    probes = [language.probe_model(model, texts, small.topics, measurement) for model in small.models]
    return language.Probe.joined(probes, [], measurement)


STEPS = 400  # as in the figure
PARTS = ("value", "key", "query")


@dataclass(frozen=True)
class Curves:
    setting: str
    run: pretraining.PretrainRun

    @property
    def label(self) -> str:
        return f"{self.setting}, seed {self.run.config.seed % 1000}"

    def starts(self) -> dict[str, dict[str, float]]:
        return {layer: pages.starts(self.run.metrics, layer) for layer in layer_names(self.run.metrics)}


@dataclass(frozen=True)
class LayerRuns:
    near: list[Curves]
    usual: list[Curves]
    given_text: bool


def measure_layers(context: Context) -> LayerRuns:
    """Two rates from near zero, as the figure has two groups of curves; and the library's own start."""
    quick = context.scale == "quick"
    length, batch_size = context.pick((64, 32), (128, 64))
    if context.corpus:
        texts = list(language.Corpus(context.corpus).sample(context.pick(2000, 20_000), context.seed))
        tokenizer = pretraining.train_tokenizer(texts, "wordpiece", 8000, length, exact=False)
    else:  # made-up texts stand in: they have short rows and a small vocabulary
        length, batch_size, lists = 50, context.pick(16, 64), word_lists()
        texts, tokenizer = sample_texts(lists, context.seed), build_tokenizer(lists)
    # dropout takes half of the time on a CPU, and changes nothing that is measured here
    shape = {"layers": 4, "heads": 4, "dim": context.pick(64, 256), "dropout": 0.0 if quick else "usual"}

    def runs(start: str, lr: float) -> list[Curves]:
        settings = {
            "text": {"corpus": list(context.corpus) or ["(made-up texts)"]},
            "steps": STEPS,
            "snapshots": "none",
            "held_out": {"share": 0.0},  # all of the text is trained on; nothing here asks for another loss
            "model": {**shape, "init_scale": 1e-4 if start == "near zero" else "usual"},
            "optimizer": {"lr": lr},
            "length": length,
            "batch_size": batch_size,
            "micro_batch": batch_size if quick else None,  # small batches cost mostly their calls
        }
        configs = (pretraining.PretrainConfig.of(settings | {"seed": seed}) for seed in context.seeds(1, 3))
        trained = (pretraining.pretrain(config, texts=texts, tokenizer=tokenizer) for config in configs)
        return [Curves(f"{start}, AdamW {lr:g}", run) for run in trained]

    slow, fast = context.pick((0.001, 0.003), (0.0003, 0.001))  # wider models take smaller steps
    return LayerRuns(runs("near zero", fast) + runs("near zero", slow), runs("usual start", slow), bool(context.corpus))


def value_first(steps: dict[str, float]) -> bool:
    return all(steps[part] > steps["value"] for part in ("key", "query"))


def judge_layers(found: LayerRuns) -> Outcome:
    runs = found.near + found.usual
    starts = {one.label: one.starts() for one in runs}
    counts = Counter(one.setting for one in runs for _ in starts[one.label])
    first = Counter(one.setting for one in runs for steps in starts[one.label].values() if value_first(steps))
    failed = [
        f"{one.label}, {pages.layer_title(layer)}"
        for one in found.near
        for layer, steps in starts[one.label].items()
        if not value_first(steps)
    ]
    near = {part: [steps[part] for one in found.near for steps in starts[one.label].values()] for part in PARTS}
    spans = ", ".join(f"{part} {min(steps):.0f} to {max(steps):.0f}" for part, steps in near.items())
    shown = [one.run for one in runs], [one.setting for one in runs]
    return Outcome(
        paper="value moves from step 0 on; key and query stay near 0 until step 60 to 200, in all four layers",
        theory="near zero the gradients of key and query are of second order",
        measured=f"on {'the given text' if found.given_text else 'made-up texts'}, layers of all runs in which key and "
        "query start after value: " + "; ".join(f"{name}: {first[name]} of {count}" for name, count in counts.items()),
        verdict=verdict(not failed),
        reason=(f"not in {', '.join(failed)}" if failed else f"near-zero runs start at step: {spans}")
        + f"; norms end at {growth(found.near)} their start from near zero, "
        f"and at {growth(found.usual)} from the usual start",
        figures=[pages.dynamics_figure(*shown), pages.loss_figure(*shown)],
        tables=[pages.stage_table(*shown)],
        numbers=starts,
        config=runs[0].run.config.as_dict(),
        ours=float(np.median(near["key"] + near["query"])),
    )


def growth(runs: Sequence[Curves]) -> str:
    factors = [norm[-1] / norm[0] for one in runs for name, norm in one.run.metrics.items() if name.startswith("norm_")]
    return " to ".join(f"{x:.0f}" if x >= 10 else f"{x:.2g}" for x in (min(factors), max(factors))) + " times"


FIGURE5 = Experiment(
    id="figure5",
    claim="In a transformer of four layers that starts near zero, value moves first and key and query later, in every "
    "layer.",
    rule="A norm starts at the step where it has made a tenth of its rise from start to plateau (mean of the last "
    "tenth of the run); one that rises by 5% or less does not start. In every layer of every near-zero run all three "
    "norms start, key and query later than value. Runs from the usual start (the library's own initial scale) are "
    "shown, not judged. Without --corpus the texts are made up.",
    measure=measure_layers,
    judge=judge_layers,
    seconds=60,
    number=Number(
        "step key, query start",
        "the step at which the norm of a key or query matrix has made a tenth of its rise, median over layers and "
        "near-zero runs; in the paper they leave zero at step 60 to 200",
        (60, 200),
        "the model, its text and its learning rates are not the paper's, whose hyperparameters are not printed",
    ),
    takes=("corpus",),
    uses=LANGUAGE,
)


@dataclass(frozen=True)
class Timelines:
    sandbox: Sequence[measures.Timeline]
    text: measures.Timeline | None
    config: dict[str, object]


def timeline_of_text(context: Context) -> tuple[measures.Timeline, pretraining.PretrainConfig]:
    config = pretraining.PretrainConfig.of(
        {
            "text": {"corpus": list(context.corpus)},
            "steps": context.pick(1500, 20_000),
            "model": {"layers": 4, "heads": 4, "dim": context.pick(64, 256), "init_scale": 1e-4, "dropout": 0.0},
            "optimizer": {"lr": 0.001},
            "seed": context.seed,
            "checkpoint_every": None,
            "held_out": {"share": 0.0},  # all of the text is trained on, as it is probed
            "length": context.pick(64, 128),
            "batch_size": context.pick(32, 64),
        }
    )
    with tempfile.TemporaryDirectory() as folder, one_thread():
        run = str(Path(folder) / "run")
        pretraining.pretrain(config, run)
        probed = language.TimelineConfig(
            run, context.corpus, documents=context.pick(100, 250), threshold=0.002, seed=context.seed, device="cpu"
        )
        return language.timeline(probed), config


def measure_timeline(context: Context) -> Timelines:
    runs = train_many(
        context,
        objective={"loss": "squared-mean"},
        optimizer={"lr": 0.002},
        model={"embedding": "trained", "init_scale": 1e-3},
        steps=3000,
        snapshots="log",
    )
    effects = (training.sandbox_effects(run.config, run.snapshots, seed=context.seed) for run in runs)
    sandbox, config = list(map(measures.Timeline.of, effects)), runs[0].config.as_dict()
    if not context.corpus:
        return Timelines(sandbox, None, config)
    text, text_config = timeline_of_text(context)
    return Timelines(sandbox, text, {"sandbox": config, "text": text_config.as_dict()})


def numbers_of(timeline: measures.Timeline) -> dict[str, object]:
    whole = timeline.as_dict()
    return {"moments": whole["moments"], "later": whole["order"]}


def judge_timeline(found: Timelines) -> Outcome:
    orders = [timeline.order for timeline in found.sandbox]
    later = [order is not None and order.interval is not None and order.interval[0] > 1 for order in orders]
    named = {f"Sandbox, seed {seed}": timeline for seed, timeline in enumerate(found.sandbox)}
    shown = pages.timeline_figures(found.sandbox[0], "timeline-sandbox")
    numbers: dict[str, object] = {"sandbox": [numbers_of(timeline) for timeline in found.sandbox]}
    measured, advice = found.sandbox[0].answer, "; on your own text: topicscope reproduce timeline --corpus FILES"
    if found.text is not None:
        named["On the given text"], numbers["text"] = found.text, numbers_of(found.text)
        shown += pages.timeline_figures(found.text, "timeline-text")
        measured, advice = f"{measured}. On the given text: {found.text.answer}", ""
    return Outcome(
        paper="not asked; the two stages suggest that the embedding comes first",
        theory="from near zero, key and query cannot grow before value and embedding have grown",
        measured=f"sandbox: {measured}",
        verdict=verdict(*later),
        reason=f"attention is later in {sum(later)} of {len(later)} sandbox runs{advice}",
        figures=shown,
        tables=[
            replace(pages.moment_table(timeline), title=f"{where}: when topic structure appears")
            for where, timeline in named.items()
        ],
        numbers=numbers,
        config=found.config,
        ours=None if orders[0] is None else orders[0].ratio,
    )


TIMELINE = Experiment(
    id="timeline",
    claim="From near zero, topic structure appears in the embedding first and in the attention later.",
    rule="Half-way step: where the same-topic minus different-topic mean has made half of its way from start to end. "
    "In every sandbox run the half-way step of attention over that of the embedding's cosine has a 95% interval "
    "(bootstrap over topics) above 1. Results on a given text are reported, not judged.",
    measure=measure_timeline,
    judge=judge_timeline,
    seconds=30,
    beyond=True,
    number=Number(
        "later by a factor of",
        "the half-way step of attention (half of the way to its final same-topic minus different-topic mean) over that "
        "of the embedding (a ratio), first sandbox run; the paper does not ask",
    ),
    takes=("corpus",),
    uses=LANGUAGE,
)
