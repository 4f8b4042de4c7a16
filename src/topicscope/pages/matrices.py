"""The matrices of the model: one name and one colour for each, in every figure and on every page."""

PARTS = {"key": "W_K", "query": "W_Q", "value": "W_V", "embedding": "W_E", "head": "W_pred"}
BOTH = "W_K, W_Q (key, query)"  # where they are predicted together

MATRIX_COLOURS = {
    "W_K (key)": "#0072B2",
    "W_Q (query)": "#56B4E9",
    "W_V (value)": "#D55E00",
    "W_E (embedding)": "#009E73",
    "W_pred (head)": "#CC79A7",
    BOTH: "#0072B2",
}
"""By the name of a curve. Okabe and Ito's palette, which colour-blind readers can tell apart."""

NORM_CURVES = {f"norm_{part}": f"{symbol} ({part})" for part, symbol in PARTS.items()}
"""Names of curves by the names of metrics."""
