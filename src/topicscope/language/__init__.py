"""Topics in real text and real models: corpora, whole words, topic fitting, loading models, probing them."""
