"""The one-layer transformer of Section 3.3: its parts, a dense pass to read and a collapsed pass to run."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
