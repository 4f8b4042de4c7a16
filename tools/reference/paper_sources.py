"""Where each claim stands in the paper, by which formula, and which files compute it.

Claims, rules and verdicts are not here: they come from the registry and from a stored reproduction. Letters of
appendices are those of arXiv 2303.04245 (of the ICML edition: E, F and G for C, D and E).
"""

from typing import NamedTuple

THEOREM2 = "W_il = -(c1 c2 + c3) / (c2^2 + T v) between topics, c3 / v more inside one"


class Source(NamedTuple):
    """`files` are below src/topicscope, besides the experiment's own; `page` explains it, below docs."""

    where: str
    formula: str
    files: tuple[str, ...]
    page: str = ""


SOURCES: dict[str, Source] = {
    "figure1": Source(
        "Section 4; model: eq 6, losses: eq 3 and eq 4",
        "E = W_E'W_E, averaged over pairs of words of one topic and of two",
        ("model/passes.py",),
    ),
    "figure2": Source("Section 5.2; eq 7 with the penalty of eq 2", THEOREM2, ("theory/theorem2.py",)),
    "figure3": Source("Section 6.2", "cos(e_i, e_j) of two word embeddings", ("language/commands.py",)),
    "figure4": Source(
        "Sections 5.1 and 8.1; eq 6, all matrices near zero at the start",
        "|W_K|, |W_Q|, |W_V| (Frobenius) at every step",
        ("training/run.py", "measure/phases.py", "theory/dynamics.py"),
        "two-stages.md",
    ),
    "figure5": Source(
        "Section 8.1",
        "norms per layer, and (1 - cos(W_V(t), W_V(t - 10))) / 2",
        ("pretraining/run.py", "measure/phases.py"),
        "two-stages.md",
    ),
    "figure6": Source(
        "Appendix D.4; eq 7, no penalty",
        "Definition 2: W_ii = c3 = 1 / k, W_i0 = -c1, all else 0",
        ("theory/theorem3.py",),
        "worlds.md",
    ),
    "figure7": Source(
        "Appendix D.5; W_V diagonal (Definition 2)",
        "loss(alpha, beta) / (p_c + p_r), T = 100, v = 300",
        ("theory/attention_loss.py",),
    ),
    "figure8": Source(
        "Appendix D.5; W_V of Theorem 2",
        "loss(alpha, beta) / (p_c + p_r), T = 100, v = 300",
        ("theory/attention_loss.py",),
    ),
    "figure9": Source("Appendix E.1; eq 7, no penalty", THEOREM2, ("theory/theorem2.py",)),
    "figure10": Source("Appendix E.1; eq 7, all matrices trained", THEOREM2, ("model/passes.py",)),
    "table1": Source(
        "Section 6.2",
        "mean over same-topic pairs / mean over different-topic pairs, each word in one topic",
        ("language/probing.py", "measure/pairs.py"),
    ),
    "table2": Source(
        "Section 8.2",
        "mean cosine of same-topic pairs - mean cosine of the pairs that co-occur most",
        ("language/probing.py",),
    ),
    "table3": Source(
        "Section 6.1 and Appendix E.2; attention: eq 5",
        "mean of A by relation: same word, same topic, different topic",
        ("measure/pairs.py",),
    ),
    "table4": Source(
        "Appendix E.2; attention: eq 5",
        "mean of A by relation, in runs whose W_V came out diagonal",
        ("measure/pairs.py",),
        "worlds.md",
    ),
    "table5": Source(
        "Appendix E.3", "as Table 1, a word in several topics", ("language/probing.py", "measure/pairs.py")
    ),
    "theorem1": Source(
        "Section 4, Theorem 1; eq 6, eq 1, eq 3",
        "sum over own topic of E_il = u_i v + c3, over any other = u_i v; E_i0 = -c2 u_i",
        ("theory/theorem2.py",),
    ),
    "theorem2": Source(
        "Section 5.2, Theorem 2; eq 7, eq 2, eq 3",
        THEOREM2 + "; W_i0 = (c2 c3 - c1 T v) / (c2^2 + T v); row 0 is zero",
        ("theory/theorem2.py", "theory/theorem.py"),
        "optimum.md",
    ),
    "theorem3": Source(
        "Section 5.3, Theorem 3; eq 7, eq 1, eq 3",
        "lambda1 (tau - 1) < (v - 1)/v alpha + beta/v < lambda2 T",
        ("theory/theorem3.py", "theory/attention_loss.py"),
    ),
    "theorem5": Source(
        "Appendix D.4, Theorem 5; eq 7, eq 1, eq 3",
        "lambda3 tau < beta < lambda4 T and alpha < lambda5 beta",
        ("theory/theorem3.py", "theory/attention_loss.py"),
    ),
    "losses": Source(
        "Section 6.1",
        "loss of a part trained alone - loss of everything trained, beside the Bayes floor",
        ("theory/floors.py",),
    ),
    "two-stage": Source(
        "Section 8.1",
        "separation = t50(W_K, W_Q) / t50(W_V)",
        ("measure/phases.py", "laws/predictions.py", "sweeps/run.py"),
        "two-stages.md",
    ),
    "assumptions": Source(
        "Assumptions 1 to 4, one relaxed at a time",
        "W* = H G^+ and W(t), with G = E[xx'] and H = E[yx']",
        ("theory/optimum.py",),
        "worlds.md",
    ),
    "finite-length": Source(
        "without Assumption 1 (infinite documents)",
        "b = p_c / (k + p_m p_r), the diagonal's excess over its block",
        ("theory/value_optimum.py",),
        "worlds.md",
    ),
    "coarse-to-fine": Source(
        "topics in groups",
        "half-time = ln 2 / (2 x eigenvalue) of contrasts between groups, and inside them",
        ("theory/forces.py",),
        "worlds.md",
    ),
    "topic-order": Source(
        "topics of unequal weight",
        "order of E[theta_t^2], half-times of W(t)",
        ("theory/optimum.py",),
        "worlds.md",
    ),
    "stage-law": Source(
        "gradient flow of eq 7 and eq 3",
        "t50(W_V) = ln 2 / (2 lambda), t50(W_K, W_Q) = (sqrt(d_a) / sigma) ln(c / s)",
        ("theory/dynamics.py", "theory/gradient_flow.py"),
        "dynamics.md",
    ),
    "rank": Source(
        "gradient flow of eq 7 and eq 3",
        "W_K'W_Q / sqrt(d_a) = l* Pi, of rank T - 1",
        ("theory/attention_loss.py", "theory/gradient_flow.py"),
        "dynamics.md",
    ),
    "no-correct-words": Source(
        "gradient flow with p_c = 0",
        "sigma = 2 p_c p_1 (tau - 1) / (k v tau (T - 1)) = 0",
        ("theory/forces.py",),
        "dynamics.md",
    ),
    "one-topic": Source("gradient flow with tau = 1", "time = C / s", ("theory/gradient_flow.py",), "dynamics.md"),
    "sgd-second-stage": Source(
        "SGD on eq 7 and eq 3", "step = t50(W_K, W_Q) / rate", ("theory/dynamics.py",), "dynamics.md"
    ),
    "adam-clocks": Source(
        "Adam on eq 7 and eq 3", "half-way steps from sigma, lambda and epsilon", ("theory/growth.py",), "dynamics.md"
    ),
    "mask-first": Source(
        "gradient flow of eq 7 and eq 4",
        "force on the [MASK] query",
        ("theory/growth.py", "theory/forces.py"),
        "dynamics.md",
    ),
    "small-start": Source(
        "gradient flow of eq 6 and eq 3, the embedding trained",
        "t50(W_V) = C / (f s sqrt(d))",
        ("theory/population.py", "theory/growth.py"),
        "dynamics.md",
    ),
    "pipeline": Source(
        "Section 6.2 on texts with known topics",
        "share of words in their true topic; contrasts of a trained and of a random model",
        ("language/assignment.py", "language/probing.py"),
        "topics.md",
    ),
    "timeline": Source(
        "Section 8.1, asked of topics",
        "half-way step of attention / half-way step of the embedding",
        ("training/timeline.py", "measure/phases.py"),
        "two-stages.md",
    ),
}

WITHOUT_EXPERIMENT = {
    "Lemma 1, Theorem 4": Source(
        "Appendix A.1 and C.1; eq 7, no penalty",
        "sum over own topic of W_il = u_i v + c3, over any other = u_i v; W_i0 = -c1 - c2 u_i",
        ("theory/theorem2.py",),
        "optimum.md",
    ),
}
"""Statements that nothing is trained for: `topicscope theory verify` derives them by computation."""
