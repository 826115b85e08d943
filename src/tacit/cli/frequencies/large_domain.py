"""A domain of so many bits, whose values nobody lists: hashed texts, or whole numbers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.cli.frequencies.columns import lines_of
from tacit.errors import check_count

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["LargeDomain"]

_WHOLE = re.compile(r"\+?0*([0-9]{1,20})(\.0*)?")


class LargeDomain:
    """What cells are in a domain of 2^bits values.

    Attributes:
        bits: From 1 to 64.
        items: "hashed": a text is the first bits of its hash. "numbers": a cell is a whole number.
        seed: Of the hash; public.
        names: Texts whose hashes are read back.
    """

    def __init__(self, bits: int, items: str, seed: int, dictionary: Path | None) -> None:
        self.bits = bits
        self.items = items
        self.seed = check_count("hash_seed", seed, low=0, high=2**64 - 1)
        self.names = (
            [] if dictionary is None else [line.strip() for line in lines_of("dictionary", dictionary)]
        )

    def places(self, cells: object) -> npt.NDArray[np.uint64]:
        """Return the value of every cell, and whether it has none, shape (n, 2); whatever the others are."""
        import numpy as np
        import pandas as pd

        from tacit.data.cells import distinct_texts

        found, which = distinct_texts(pd.Series(cells))
        values = self._hashed(found) if self.items == "hashed" else self._numbers(found)
        return np.asarray(values)[which]

    @staticmethod
    def split(places: npt.NDArray[np.integer[Any]]) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
        """Return values, and which rows have none."""
        return places[:, 0], places[:, 1] == 1

    def named(self, values: npt.NDArray[Any]) -> list[str | None]:
        """Return the texts of values, those of one value together; None where no text is known."""
        from tacit.frequencies import hashed_items

        texts: dict[int, list[str]] = {}
        for item, name in zip(
            hashed_items(self.names, self.bits, seed=self.seed).tolist(), self.names, strict=True
        ):
            texts.setdefault(item, []).append(name)
        return [
            " | ".join(dict.fromkeys(texts[value])) if value in texts else None for value in values.tolist()
        ]

    def _hashed(self, found: npt.NDArray[np.object_]) -> npt.NDArray[np.uint64]:
        import numpy as np

        from tacit.frequencies import hashed_items

        missing = found == ""
        return np.stack([hashed_items(found, self.bits, seed=self.seed), missing.astype(np.uint64)], axis=1)

    def _numbers(self, found: npt.NDArray[np.object_]) -> npt.NDArray[np.uint64]:
        import numpy as np

        whole = [_WHOLE.fullmatch(text) for text in found]
        numbers = [int(one[1]) if one else 2**self.bits for one in whole]
        rows = [(number, 0) if number < 2**self.bits else (0, 1) for number in numbers]
        return np.array(rows, dtype=np.uint64).reshape(-1, 2)
