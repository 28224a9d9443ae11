"""The operator's lexicon while the server runs: loaded at the start, and again whenever its file changes.

A file that is broken while it is edited is said in the log, and the words stay as they were.
"""

import asyncio
import logging
from pathlib import Path

from ..synth.text.lexicon import Lexicon, LexiconError, signature
from .house import House

logger = logging.getLogger("voxgate.lexicon")

LOOK_S = 1.0


class Pronunciation:
    """`file` None: no word is pronounced in any special way. Raises `LexiconError` for a file that cannot be used."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._signature = signature(file) if file else None
        self.lexicon = Lexicon.load(file) if file else Lexicon()

    async def follow(self, house: House, every_s: float = LOOK_S) -> None:
        """Gives the house the words of the file as it is, until cancelled."""
        while self._file is not None:
            await asyncio.sleep(every_s)
            self._look(self._file)
            house.lexicon = self.lexicon

    def _look(self, file: Path) -> None:
        now = signature(file)
        if now == self._signature:
            return
        self._signature = now
        try:
            self.lexicon = Lexicon.load(file)
            logger.info("the lexicon has been read again")
        except LexiconError as problem:
            logger.error("the lexicon stays as it was: %s", problem)
