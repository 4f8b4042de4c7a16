"""Small transformers trained on real text by masked language modelling, their attention matrices followed step by step."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
