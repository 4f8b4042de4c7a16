"""Small transformers trained on text by masked language modelling, their attention matrices measured at every step."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
