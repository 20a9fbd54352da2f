"""Puts the program of the protocols quic and mpquic into wheels: the file that MPQUIC names."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithProgram(build_py):
    """Copies the program beside the modules; an editable installation has that of `make mpquic`."""

    def run(self) -> None:
        """Build the modules, then copy."""
        super().run()
        program = os.environ.get("MPQUIC")
        if program and not self.editable_mode:
            shutil.copy2(program, Path(self.build_lib, "experiments/apps/mpquic"))


setup(cmdclass={"build_py": BuildWithProgram})
