"""Column generation on HiGHS: a second exact method beside the compiled one, to compare with.

Importing it adds the engine `highs` to `gomr.ENGINES`.
"""

from __future__ import annotations

from benchmarks.gomr.highs import engine
from gomr import ENGINES

ENGINES[engine.NAME] = lambda: engine.solve
