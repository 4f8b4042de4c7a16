"""What a figure is, as data, and one builder per kind of result; drawn as PNG, SVG, CSV, page and notebook."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
