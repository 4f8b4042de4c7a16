"""Stand-ins for the paper's five models: small, trained on made-up texts whose topics are known, in seconds each.

All five are trained with the masked objective: BERT, ALBERT and RoBERTa as they are, of ELECTRA the generator (its
discriminator has another objective), and BART by denoising: its encoder reads the masked text, its decoder the text
before each place.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from topicscope import language, pretraining
from topicscope.paper.experiment import Context, Scale
from topicscope.paper.made_up import LENT, MadeUpLanguage, build_tokenizer, sample_language, word_lists

ARCHITECTURES = ("bert", "albert", "bart", "electra", "roberta")
GROUP = "small models"
"""Of the experiments that share the training: they run in one process, one after another."""

DECODED = "decoder"
"""Attention of an encoder-decoder that is judged: so small an encoder is hardly used; it is shown in the tables."""

STEPS = {"quick": 300, "full": 1500}
LONGER = {"albert": 1.6}
"""Steps of an architecture over the others': ALBERT's embeddings pass through one more matrix, and it learns later."""

SETTINGS: dict[str, Any] = {
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
}
SHAPE = {"layers": 1, "heads": 4, "dim": 64, "feedforward": 128, "dropout": 0.0, "init_scale": "usual"}


@dataclass(frozen=True)
class SmallModels:
    """The models with their tokenizer, the language that they were trained on, and its topics."""

    models: tuple[language.LoadedModel, ...]
    made_up: MadeUpLanguage
    topics: language.Topics
    losses: dict[str, tuple[float, float]]  # by model: at the first step, and the mean of the last 50

    def threshold(self, words: int) -> float:
        """The share of the vocabulary at which each topic keeps so many words, however the product is rounded."""
        return (words + 0.5) / self.topics.vocabulary_size

    @property
    def all_words(self) -> int:
        """Words of a topic: its own, and those that the topic before it lends."""
        return len(self.made_up.words) // len(self.made_up.names) + LENT


def small_models(context: Context) -> SmallModels:
    """Trained once per process; every random draw follows from the seed, so that it is the same whenever it is done."""
    return _trained(context.scale, context.seed)


@lru_cache(maxsize=1)
def _trained(scale: Scale, seed: int) -> SmallModels:
    lists = word_lists()
    made_up, tokenizer = sample_language(lists, seed), build_tokenizer(lists)
    models, losses = [], {}
    for number, architecture in enumerate(ARCHITECTURES):
        # another seed for each: ELECTRA's generator would else have the very weights of BERT
        steps = round(STEPS[scale] * LONGER.get(architecture, 1))
        own = {"model": SHAPE | {"architecture": architecture}, "steps": steps, "seed": 1000 * seed + number}
        run = pretraining.pretrain(
            pretraining.PretrainConfig.of(SETTINGS | own), texts=made_up.texts, tokenizer=tokenizer
        )
        name = f"small-{architecture}"
        models.append(language.checked(name, run.model.base_model, tokenizer))
        losses[name] = (float(run.results.first_loss or "nan"), float(run.results.loss or "nan"))
    return SmallModels(tuple(models), made_up, made_up.topics(tokenizer), losses)


def probe_small(context: Context, words: int | None = None, **settings: Any) -> language.Probe:
    """The probes of all five at their known topics: of each topic all words, or so many of the likeliest."""
    small = small_models(context)
    measurement = language.Measurement(
        thresholds=(small.threshold(words or small.all_words),), seed=context.seed, ablation=False, **settings
    )
    texts = small.made_up.texts[: context.pick(150, 1000)]
    probes = [language.probe_model(model, texts, small.topics, measurement) for model in small.models]
    return language.Probe.joined(probes, [], measurement)
