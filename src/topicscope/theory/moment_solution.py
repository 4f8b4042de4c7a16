"""W* = H G^+ from the two moments of documents (R5), to full precision also where words are rare."""

import numpy as np
from jaxtyping import Float

from topicscope.theory.document_moments import DocumentMoments
from topicscope.theory.value_optimum import ValueArray

ZERO_MOMENT = 1e-13  # eigenvalues of E[xx'] below this share of the largest are zero


def solve_moments(moments: DocumentMoments) -> tuple[ValueArray, Float[np.ndarray, "V r"], Float[np.ndarray, " r"]]:
    """W* = H G^+ from the two moments G = E[xx'] and H = E[yx'].

    Args:
        moments: G and H.

    Returns:
        W* (V x V), and the eigenvectors (V x r) and eigenvalues (r) of G that are not zero, the largest first.

    Example:
        >>> moments = DocumentMoments(shown=np.diag([0.5, 0.5]), joint=np.diag([0.0, 0.5]))
        >>> solve_moments(moments)[0].round(12).tolist()
        [[0.0, 0.0], [0.0, 1.0]]
    """
    value = whole_solution(moments)
    rates, vectors = graded_eigen(moments.shown)
    if value is not None:
        shown = np.count_nonzero(moments.shown.sum(1))
        return value, vectors[:, :shown], rates[:shown]
    kept = rates > ZERO_MOMENT * rates[0]
    directions, rates = vectors[:, kept], rates[kept]
    return (moments.joint @ directions / rates) @ directions.T, directions, rates


def whole_solution(moments: DocumentMoments) -> ValueArray | None:
    """H G^+ where G has an inverse on the words that are shown; None where documents lack some mixtures of words.

    Rare words make small eigenvalues that are not zero. In D^(-1/2) G D^(-1/2), D = diag(E[x]), every word that is ever
    shown counts alike, so that the solution has full precision.
    """
    shown = moments.shown.sum(1)  # E[x], since x sums to 1
    some = np.flatnonzero(shown)
    scale = np.sqrt(shown[some])
    scaled = moments.shown[np.ix_(some, some)] / np.outer(scale, scale)
    try:
        pivots = np.diagonal(np.linalg.cholesky(scaled)) ** 2
    except np.linalg.LinAlgError:
        return None
    if not (pivots > ZERO_MOMENT * np.diagonal(scaled)).all():
        return None
    value = np.zeros_like(moments.joint)
    value[:, some] = np.linalg.solve(scaled, (moments.joint[:, some] / scale).T).T / scale
    return value


def graded_eigen(matrix: ValueArray) -> tuple[Float[np.ndarray, " V"], ValueArray]:
    """Eigenvalues, the largest first, and eigenvectors; those too small to be seen beside the largest, once more.

    On the space that they span the matrix is small, and its own eigenvalues are seen.
    """
    rates, vectors = (part[..., ::-1] for part in np.linalg.eigh(matrix))
    small = rates <= ZERO_MOMENT * rates[0]
    if not small.any() or not rates[0] > 0:
        return rates, vectors
    inner, turn = graded_eigen(vectors[:, small].T @ matrix @ vectors[:, small])
    return np.concatenate([rates[~small], inner]), np.hstack([vectors[:, ~small], vectors[:, small] @ turn])
