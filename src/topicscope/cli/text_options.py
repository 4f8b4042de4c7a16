"""The options of `topicscope topics`, `probe`, `timeline` and `words`: settings of the same names, each declared once.

In the order of the help.
"""

from pathlib import Path
from typing import Annotated, Any

from topicscope.cli.options import (
    SETTINGS,
    AddressOption,
    AsJson,
    Assignments,
    ConfigFile,
    Device,
    EngineOption,
    Option,
    WorkersOption,
    Yes,
    option,
    out_option,
)

TEXT, TOPICS, MEASURES, CONTROLS = "Text", "Topics", "Measures", "Controls"

Embedding = Annotated[
    str | None,
    option("matrix (word embeddings) or layer (with position, type and norm).", MEASURES, show_default="matrix"),
]
OutReplaced = Annotated[
    Path | None,
    out_option("Folder to write: new, empty, or an earlier one of this command, which is replaced."),
]
NO_SETTINGS: dict[str, Option] = {
    "config": (ConfigFile, None),
    "set_": (Assignments, None),
    "engine": (EngineOption, "serial"),
    "address": (AddressOption, None),
    "workers": (WorkersOption, None),
    "out": (OutReplaced, None),
    "yes": (Yes, False),
    "as_json": (AsJson, False),
}
SETTINGS_OF_TEXT: dict[str, Any] = {
    "corpus": Annotated[
        list[str] | None,
        option("Files, patterns, folders or hf:NAME/CONFIG:SPLIT; may be repeated.", TEXT, "--corpus"),
    ],
    "tokenizer": Annotated[str | None, option("Model whose tokenizer is used: folder or hub id.", TEXT, "--tokenizer")],
    "text_field": Annotated[
        str | None, option("Field of JSON lines, CSV and Parquet that holds the text.", TEXT, show_default="text")
    ],
    "split_text": Annotated[
        str | None,
        option("What a document of a plain text file is: line, paragraph, file, or auto.", TEXT, show_default="auto"),
    ],
    "stop_words": Annotated[
        str | None, option("english, none, or a file with one word per line.", TEXT, show_default="english")
    ],
    "documents": Annotated[int | None, option("Documents to measure attention on, sampled.", TEXT, show_default="250")],
    "quick": Annotated[
        bool,
        option(
            "A first look: fewer topics, documents, sweeps and resamples, unless you set them.", SETTINGS, "--quick"
        ),
    ],
    "topics": Annotated[int | None, option("Number of topics to fit.", TOPICS, show_default="100")],
    "topics_from": Annotated[
        str | None,
        option("Use given topics: a folder of 'topicscope topics', or a CSV or JSON file of words and topics.", TOPICS),
    ],
    "label_field": Annotated[
        str | None,
        option("Field of the corpus with one label per document: labels serve as topics, none are fitted.", TOPICS),
    ],
    "backend": Annotated[str | None, option("tomotopy, sklearn or gensim.", TOPICS, show_default="tomotopy")],
    "iterations": Annotated[
        int | None, option("Gibbs sweeps of the fit (other backends: ten per pass).", TOPICS, show_default="120")
    ],
    "stability": Annotated[
        bool | None,
        option(
            "Fit a second time, with another seed: for stability and held-out perplexity.",
            TOPICS,
            show_default="stability",
        ),
    ],
    "max_documents": Annotated[
        int | None, option("Documents that topics are fitted to, sampled.", TOPICS, show_default="2500")
    ],
    "min_documents": Annotated[
        int | None, option("Words found in fewer documents are left out.", TOPICS, show_default="5")
    ],
    "thresholds": Annotated[
        list[float] | None,
        option(
            "theta: words of a topic as a share of the vocabulary; may be repeated.",
            MEASURES,
            "--threshold",
            show_default="0.0005, 0.001, 0.002",
        ),
    ],
    "threshold": Annotated[
        float | None, option("theta: words of a topic as a share of the vocabulary.", MEASURES, show_default="0.002")
    ],
    "topics_per_word": Annotated[
        str | None, option("one (Table 1), many (Table 5) or both.", MEASURES, show_default="one")
    ],
    "windows": Annotated[
        int | None,
        option("Pieces, each as long as the model's input, taken from each document.", MEASURES, show_default="2"),
    ],
    "embedding": Embedding,
    "bootstrap": Annotated[int | None, option("Bootstrap resamples for the intervals.", MEASURES, show_default="1000")],
    "shuffles": Annotated[
        int | None,
        option(
            "Shuffles of topics among words (a tenth as many for attention); 0: none.", CONTROLS, show_default="1000"
        ),
    ],
    "matched": Annotated[
        bool | None, option("Also compare pairs of equal word frequencies.", CONTROLS, show_default="matched")
    ],
    "random": Annotated[
        bool | None,
        option("Also probe the same architecture with random weights.", CONTROLS, show_default="random"),
    ],
    "cooccurrence": Annotated[
        bool | None,
        option("Compare with the top co-occurring pairs (Table 2).", CONTROLS, show_default="cooccurrence"),
    ],
    "states": Annotated[
        bool | None, option("Also measure hidden states, layer by layer.", MEASURES, show_default="states")
    ],
    "ablation": Annotated[
        bool | None, option("Also measure the loss without topical heads.", MEASURES, show_default="ablation")
    ],
    "show_documents": Annotated[
        int | None,
        option(
            "Documents to show on the page: those of highest and lowest contrast, and random ones; 0: none.",
            MEASURES,
            show_default="5",
        ),
    ],
    "seed": Annotated[int | None, option("Seed of every random draw.", SETTINGS, show_default="0")],
    "device": Device,
}


def options_of(*without: str, **own: Any) -> dict[str, Option]:
    """All options but some, those of a command's `own` in their place or after them."""
    hints = {name: hint for name, hint in (SETTINGS_OF_TEXT | own).items() if name not in without}
    return {name: (hint, False if name == "quick" else None) for name, hint in hints.items()} | NO_SETTINGS
