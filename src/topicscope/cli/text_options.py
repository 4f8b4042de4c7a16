"""Options of the commands that read text: the corpus, the topics, and how a model is measured."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from topicscope.cli.options import OUTPUT, SETTINGS, option

TEXT, TOPICS, MEASURES, CONTROLS = "Text", "Topics", "Measures", "Controls"

Corpus = Annotated[
    list[str] | None,
    option("Files, patterns, folders or hf:NAME/CONFIG:SPLIT; may be repeated.", TEXT, "--corpus"),
]
TextField = Annotated[
    str | None, option("Field of JSON lines, CSV and Parquet that holds the text.", TEXT, show_default="text")
]
SplitText = Annotated[
    str | None,
    option("What a document of a plain text file is: line, paragraph, file, or auto.", TEXT, show_default="auto"),
]
StopWords = Annotated[
    str | None, option("english, none, or a file with one word per line.", TEXT, show_default="english")
]
Documents = Annotated[int | None, option("Documents of the attention pass, sampled.", TEXT, show_default="250")]
Topics = Annotated[int | None, option("Number of topics to fit.", TOPICS, show_default="100")]
TopicsFrom = Annotated[
    str | None,
    option("Given topics: a folder of 'topicscope topics', or a CSV or JSON file of words and topics.", TOPICS),
]
Iterations = Annotated[
    int | None, option("Gibbs sweeps of the fit (other backends: ten per pass).", TOPICS, show_default="120")
]
MaxDocuments = Annotated[
    int | None, option("Documents that topics are fitted to, sampled.", TOPICS, show_default="2500")
]
Windows = Annotated[
    int | None, option("Pieces of the model's length taken of each document.", MEASURES, show_default="2")
]
Embedding = Annotated[
    str | None,
    option("matrix (word embeddings) or layer (with position, type and norm).", MEASURES, show_default="matrix"),
]
Bootstrap = Annotated[int | None, option("Resamples of the intervals.", MEASURES, show_default="1000")]
Matched = Annotated[
    bool | None, option("Compare pairs of equal word frequencies too.", CONTROLS, show_default="matched")
]
Seed = Annotated[int | None, option("Seed of every random draw.", SETTINGS, show_default="0")]
OutReplaced = Annotated[
    Path | None,
    option("Folder to write: new, empty, or one of this command, which is replaced.", OUTPUT, "--out", "-o"),
]
