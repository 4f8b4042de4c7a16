"""The explorer: a window in the browser on theory, runs and results, served on this machine alone."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
