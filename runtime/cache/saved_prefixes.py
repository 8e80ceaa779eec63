"""Between the prefix tree, the pages of a backend and the files that keep them."""

from __future__ import annotations

import logging
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from sglite.runtime.cache.page_files import PageFiles

if TYPE_CHECKING:
    from sglite.runtime.backends.base import Backend
    from sglite.runtime.cache.prefix_tree import PrefixTree

logger = logging.getLogger("sglite.cache")

PAGES_AT_A_TIME = 64
"""Saved together, in one file: what a request that comes meanwhile waits for."""


class SavedPrefixes:
    """Restores pages for a PrefixTree, and saves those that it has and the files have not."""

    def __init__(self, files: PageFiles, backend: Backend) -> None:
        self.identity = files.identity
        self.restored = 0
        self.saved = 0
        self._files = files
        self._backend = backend

    def __contains__(self, digest: bytes) -> bool:
        return digest in self._files

    def restore(self, digest: bytes, page: int) -> bool:
        """Write a saved page into a page of the pool; False if it is not there after all."""
        data = self._files.read(digest)
        if data is None:
            return False
        self._backend.write_page(page, data)
        self.restored += 1
        return True

    def save_some(self, tree: PrefixTree) -> bool:
        """Save the next pages of the tree; False when there are none left to save."""
        nodes = list(islice(tree.unsaved, PAGES_AT_A_TIME))
        pages = []
        for node in nodes:
            del tree.unsaved[node]
            if node.digest not in self._files:
                data = np.empty(self._backend.bytes_per_page, np.uint8)
                self._backend.read_page(node.page, data)
                pages.append((node.digest, data))
        if pages:
            try:
                self._files.write(pages)
            except OSError as error:
                logger.warning("the prefix cache is not saved any more: %s", error)
                tree.unsaved.clear()
                return False
            self.saved += len(pages)
        return bool(tree.unsaved)
