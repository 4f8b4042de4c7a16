"""What the laws of the stages cover, in words, and the reason that `dynamics` gives where a limit is passed.

The table of laws (`topicscope list laws`) lists the limits of each stage.
"""

from typing import Any, NamedTuple


class Limit(NamedTuple):
    """What is covered, and the reason where it is not, with places for numbers."""

    covers: str
    reason: str


LIMITS = {
    "finite-documents": Limit(
        "infinite documents",
        "key and query, at documents of length {length}: finite documents teach W_V a diagonal, which adds to the "
        "force on attention; only infinite documents are analysed (length infinite)",
    ),
    "topics-not-alike": Limit("disjoint, exchangeable topics of equal words", "key and query: {error}"),
    "no-force": Limit("a force on attention", "key and query: {reason}"),
    "few-dimensions": Limit(
        "attention_dim of T - 1 or more",
        "the plateau, at attention_dim = {dim}: {modes} topic contrasts do not fit into fewer dimensions",
    ),
    "zero-start": Limit(
        "a start above 0",
        "the half-time of key and query, at init_scale = 0: they stay at zero, an unstable balance",
    ),
    "large-start": Limit(
        "starts up to .03",
        "the half-time of key and query, at init_scale = {scale:g}: the law was measured up to {largest:g}; larger "
        "starts mix the stages",
    ),
    "above-plateau": Limit(
        "starts below half of the plateau",
        "the half-time of key and query, at init_scale = {scale:g}: in topic contrasts they start above half of the "
        "plateau's norm, so there is no rise to be half-way on",
    ),
    "slow-value": Limit(
        "W_V ten times as fast as key and query",
        "the half-time of key and query under gradient flow: W_V is less than ten times as fast as they are, so it "
        "does not follow them at once",
    ),
    "overtaken": Limit(
        "key and query before differences inside topics",
        "the half-time of key and query under gradient flow: before it differences inside topics grow by "
        "exp({gain:.3g}), from init_scale = {scale:g} to the size of the weights; a smaller start keeps the acts apart",
    ),
    "early-third-act": Limit(
        "a third act after the plateau",
        "the third act's time: from this start it shows before key and query are on their plateau",
    ),
    "entropy-half-times": Limit(
        "the start under cross entropy alone",
        "half-times under cross entropy: they depend on the length of the run; only the start is known",
    ),
    "entropy-topics": Limit(
        "infinite documents and topics that are alike",
        "the start under cross entropy: known for infinite documents and topics that are alike",
    ),
    "entropy-same-topics": Limit(
        "documents that differ in their topics",
        "the start under cross entropy: all documents have the same topics, so none is learnt",
    ),
    "entropy-no-mask": Limit(
        "masked positions that show [MASK]", "the start under cross entropy: no masked position shows [MASK]"
    ),
    "entropy-start": Limit(
        "starts above 0 and up to .03",
        "the start under cross entropy at init_scale = {scale:g}: the law holds above 0 and was measured up to "
        "{largest:g}",
    ),
    "embedding-topics": Limit(
        "infinite documents and topics that are alike",
        "a trained embedding: known for infinite documents and topics that are alike",
    ),
    "embedding-same-topics": Limit(
        "documents that differ in their topics",
        "a trained embedding: all documents have the same topics, so none is learnt",
    ),
    "embedding-adam": Limit("flow or SGD", "a trained embedding with Adam: its steps do not feel the saddle at zero"),
    "embedding-start": Limit(
        "starts above 0, up to init_scale x sqrt(width) = .3",
        "a trained embedding at init_scale x sqrt(width) = {size:.3g}: the law holds above 0 and up to {largest:g}",
    ),
    "embedding-entropy": Limit(
        "key and query with squared loss",
        "key and query with a trained embedding under cross entropy: their later course is not known",
    ),
    "adam-setting": Limit(
        "one-hot words, squared loss, infinite documents, topics that are alike",
        "steps of Adam: known for one-hot words, squared loss, infinite documents and topics that are alike",
    ),
    "adam-fast": Limit(
        "ten steps of Adam or more",
        "steps of Adam at lr = {lr:g}: the clocks give {fewest:.2g}, and they hold from {least} on, which is how many "
        "gradients Adam's first mean spans",
    ),
    "sgd-diverges": Limit(
        "rates of SGD below 1 over the largest eigenvalue",
        "steps of SGD: at lr = {lr:g} W_V diverges; it is stable below {stable:.4g}",
    ),
}
"""By code. Each stage has some of them: see `laws.LAWS`."""


def passed(code: str, **numbers: Any) -> str:
    """The reason where a limit is passed."""
    return LIMITS[code].reason.format(**numbers)
