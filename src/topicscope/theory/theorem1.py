"""Theorem 1: only the embedding is trained (uniform attention, W_V = I), with the prediction bias fixed.

E = W_E'W_E satisfies the conditions of Lemma 1 with E_i0 = -c2 u_i: the bias takes over what c1 does there.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from topicscope.ground import InputError
from topicscope.theory.constants import Constants
from topicscope.theory.lemma1 import Membership, fit_family
from topicscope.world import Masking, TopicModel


def prediction_bias(topic_model: TopicModel, masking: Masking) -> Float[np.ndarray, " V"]:
    """b_0 = 0 and b_i = -p_m p_r / (k T v): takes away the share of every prediction that random words cause."""
    bias = np.full(topic_model.vocabulary, -masking.p_mask * masking.p_random / (masking.k * topic_model.words))
    bias[0] = 0
    return bias


def fit_embedding(embedding: Float[np.ndarray, "d V"], topic_model: TopicModel, masking: Masking) -> Membership:
    """Membership test of a trained embedding: is W_E'W_E in the family, and if not, by how much?"""
    if embedding.ndim != 2 or embedding.shape[1] != topic_model.vocabulary:
        raise InputError(
            f"the embedding has shape {embedding.shape}; expected (dim, {topic_model.vocabulary}): a column a word"
        )
    return fit_family(embedding.T @ embedding, topic_model, masking, column=np.zeros(topic_model.vocabulary))


def identity_member(topic_model: TopicModel, masking: Masking) -> Float[np.ndarray, "V V"]:
    """The simplest E, with u = 0: words only know themselves, E = I / k; [MASK] is nothing."""
    gram = np.eye(topic_model.vocabulary) / masking.k
    gram[0, 0] = 0
    return gram


def member(
    topic_model: TopicModel, masking: Masking, u: float = 0.0, inner: Float[np.ndarray, "Tv Tv"] | None = None
) -> Float[np.ndarray, "V V"]:
    """A realisable E (symmetric, positive semi-definite), for any u >= 0 and any positive semi-definite `inner`:

    E = u z z' + c3 blocks(1/v) + C inner C with z = (-c2, 1, ..., 1) and C the centring inside each topic, whose sums over topics vanish.
    """
    if u < 0:
        raise InputError(f"u = {u:g}: expected u >= 0, since E_00 = c2^2 u is the square of a length")
    c, v = Constants.of(topic_model, masking), topic_model.words_per_topic
    z = np.ones(topic_model.vocabulary)
    z[0] = -c.c2
    gram = u * np.outer(z, z)
    mean = np.kron(np.eye(topic_model.topics), np.full((v, v), 1 / v))
    centring = np.eye(topic_model.words) - mean
    gram[1:, 1:] += c.c3 * mean
    if inner is not None:
        gram[1:, 1:] += centring @ inner @ centring
    return gram


def random_member(topic_model: TopicModel, masking: Masking, rng: np.random.Generator) -> Float[np.ndarray, "V V"]:
    """A realisable E with random u and a random inner part."""
    root = rng.standard_normal((topic_model.words, topic_model.words)) / np.sqrt(topic_model.words)
    return member(topic_model, masking, u=float(rng.uniform(0, 0.1)), inner=root.T @ root)


def embedding_of(gram: Float[np.ndarray, "V V"]) -> Float[np.ndarray, "V V"]:
    """W_E with W_E'W_E = E."""
    values, vectors = np.linalg.eigh(gram)
    if values.min() < -1e-9 * max(1.0, values.max()):
        raise InputError(
            f"E has the eigenvalue {values.min():.3g}; expected none below 0, or no embedding has it as its Gram matrix"
        )
    return np.sqrt(np.maximum(values, 0))[:, None] * vectors.T
