"""Where the checkout and what the tests read are."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "tests" / "data"
EXTENSIONS = ROOT / "tests" / "experiments" / "extensions"
