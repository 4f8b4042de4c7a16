"""python -m tools.reference: write the generated pages."""

from pathlib import Path

from tools.reference import write_reference

write_reference(Path(__file__).parents[2] / "docs" / "reference")
