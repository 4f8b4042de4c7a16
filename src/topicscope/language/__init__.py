"""Topics in real text and real models: corpora, whole words, topic fitting, loading models, probing them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
