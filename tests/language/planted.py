"""Small BERTs whose weights are set by hand, so that it is known where they have topics, and texts to read them on.

60 words in ten topics. Every word has a partner in another topic, beside which it stands more often than beside any
other word: pairs that stand together are not pairs of one topic. Two topics each are equally frequent.
"""

from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

from topicscope.language import Assignment, LoadedModel, checked, whole_words
from topicscope.measure import Membership, frequency_bins

TOPICS, EACH, DIM, HEADS = 10, 6, 256, 4
WORDS = TOPICS * EACH
TOPIC = np.repeat(np.arange(TOPICS), EACH)
PARTNER = np.arange(WORDS) + np.where(TOPIC % 2, -EACH, EACH)
HEAD = 1  # of the first layer, where one head has topics
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
NAMES = [f"{'abcdefghij'[t]}{'klmnop'[w]}{'qrstuvwxyz'[t]}" for t in range(TOPICS) for w in range(EACH)]


def tokenizer() -> Any:
    names = {name: number for number, name in enumerate([*SPECIAL, *NAMES])}
    built = Tokenizer(models.WordLevel(names, unk_token="[UNK]"))
    built.pre_tokenizer = pre_tokenizers.Whitespace()
    built.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    special = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), SPECIAL, strict=True))
    build: Any = PreTrainedTokenizerFast
    return build(tokenizer_object=built, model_max_length=64, **special)


def texts(rng: np.random.Generator, count: int, ratio: float) -> list[str]:
    """Documents of two topics, in which partners stand together. `ratio`: from a level of frequency to the next."""
    share = ratio ** np.arange(TOPICS // 2).repeat(2)
    documents = []
    for _ in range(count):
        chosen = rng.choice(TOPICS, 2, replace=False, p=share / share.sum())
        words = rng.choice(np.flatnonzero(np.isin(TOPIC, chosen)), 15)
        documents.append(" ".join(f"{NAMES[w]} {NAMES[PARTNER[w]]}" for w in words))
    return documents


def unit(vectors: np.ndarray) -> np.ndarray:
    """As the layer norm leaves them: mean zero, length sqrt(d)."""
    centred = vectors - vectors.mean(-1, keepdims=True)
    return centred / centred.std(-1, keepdims=True)


def embeddings(rng: np.random.Generator, kind: str, counts: np.ndarray) -> np.ndarray:
    own, topic, level, pair = (unit(rng.standard_normal((n, DIM))) for n in (WORDS, TOPICS, 5, WORDS))
    if kind == "topics":
        return unit(own + 0.7 * topic[TOPIC])
    if kind == "frequency":  # words are alike that are equally frequent
        return unit(own + 0.7 * level[frequency_bins(counts)])
    if kind == "cooccurrence":  # words that stand together are alike, most of all partners
        return unit(own + 1.5 * pair[np.minimum(np.arange(WORDS), PARTNER)] + 0.5 * topic[TOPIC])
    return own


def planted(kind: str, seed: int) -> tuple[LoadedModel, Assignment, list[str]]:
    """A model with topics 'nowhere', in its embeddings ('topics'), or what looks like them ('frequency',
    'cooccurrence'), in one 'head', or in one layer of 'states'; its topics; its texts.
    """
    rng, tokens = np.random.default_rng(seed), tokenizer()
    torch.manual_seed(seed)
    shape = BertConfig(
        vocab_size=len(tokens),
        hidden_size=DIM,
        num_hidden_layers=2,
        num_attention_heads=HEADS,
        intermediate_size=WORDS,
        max_position_embeddings=64,
    )
    build: Any = BertModel
    model = build(shape, add_pooling_layer=False).eval()
    documents = texts(rng, 120, 2.0 if kind == "frequency" else 1.0)
    counts = np.bincount([NAMES.index(w) for text in documents for w in text.split()], minlength=WORDS)
    word = embeddings(rng, kind, counts)
    with torch.no_grad():
        for name, part in model.named_parameters():
            if any(zero in name for zero in ("position", "token_type", ".output.dense")):
                part.zero_()  # states are those of the words alone
        model.embeddings.word_embeddings.weight[len(SPECIAL) :] = torch.tensor(word, dtype=torch.float32)
        if kind == "head":  # q.k of words of one topic is large
            read = np.linalg.pinv(word) @ np.eye(TOPICS)[TOPIC]  # d x T: which topic a word has
            attention = model.encoder.layer[0].attention.self
            for part in (attention.query, attention.key):
                place = slice(HEAD * DIM // HEADS, HEAD * DIM // HEADS + TOPICS)
                part.weight[place] = torch.tensor(4 * read.T, dtype=torch.float32)
        if kind == "states":
            with_topic = unit(word + unit(rng.standard_normal((TOPICS, DIM)))[TOPIC])
            for layer, before, after in ((0, word, with_topic), (1, with_topic, word)):
                set_step(model.encoder.layer[layer], before, after)
            model.encoder.layer[1].attention.self.query.weight.zero_()  # which would read the topics
    loaded = checked(kind, model, tokens)
    vocabulary = whole_words(tokens, [])
    return loaded, assignment(vocabulary, counts), documents


def set_step(layer: Any, before: np.ndarray, after: np.ndarray) -> None:
    """A layer that turns the state of every word into another: one unit sees each word, and adds what is missing."""
    see = np.linalg.pinv(before).T  # W x d: one for the word itself, zero for others
    layer.intermediate.dense.weight[:] = torch.tensor(20 * see, dtype=torch.float32)
    layer.intermediate.dense.bias[:] = -10.0
    layer.output.dense.weight[:] = torch.tensor(((after - before) / 10).T, dtype=torch.float32)
    layer.output.dense.bias.zero_()


def assignment(vocabulary: Any, counts: np.ndarray) -> Assignment:
    order = [vocabulary.number[name] for name in NAMES]
    return Assignment(
        token=vocabulary.token[order],
        words=tuple(NAMES),
        frequency=counts.astype(float),
        membership=Membership(np.arange(WORDS), TOPIC, WORDS, TOPICS),
        threshold=None,
        topics_per_word="one",
        names=tuple(f"topic {t}" for t in range(TOPICS)),
    )
