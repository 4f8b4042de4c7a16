"""Made-up texts: words of twelve known topics, in two kinds.

`sample_texts` writes documents of the sandbox in words. `sample_language` is nearer to real text: neighbouring words
share a topic, some words belong to two topics, and some words of different topics always stand together.
"""

import itertools
import json
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from topicscope import language, pretraining
from topicscope.ground import Stream, generator, merged
from topicscope.paper.experiment import Context
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
    """Probability of each word in each topic: its own words, the r-th in proportion to r^-.1, and the last ones of the
    topic before it.
    """
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
