# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""The models in use: those of the directory, or what was learnt since from them.

A refit is stored in the database with the checksums of the files that it began with, through
however many refits. It is in use as long as just these files are there: an operator who puts
another file has the last word, and so does one who takes it away. No clock is asked.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import threading
from typing import Any, Callable, Mapping

from tracon_watcher.characteristics import RESPONSES
from tracon_watcher.engine.storage import documents
from tracon_watcher.engine.storage import errors as storage_errors
from tracon_watcher.engine.storage import lease
from tracon_watcher import errors
from tracon_watcher.placement import assessment
from tracon_watcher.prediction import store

#: Where models tell of their refit: in ``training``.
REFIT = 'refit'
#: In there, of which files they come.
ROOT = 'root'


@dataclasses.dataclass(frozen=True)
class _Refit:
    models: assessment.Models
    root: str


class ActiveModels:
    """Keeps the models by host type. Safe for use by several threads.

    :param files: returns the models of the directory
    :param stored: the models of the database
    :param report: called with a kind and a text for each thing that is not as it should be
    """

    def __init__(self, files: Callable[[], Mapping[str, assessment.Models]],
                 stored: documents.Documents, report: Callable[[str, str], None]) -> None:
        self._files = files
        self._stored = stored
        self._report = report
        self._lock = threading.Lock()
        self._read = False
        self._refits: dict[str, _Refit] = {}
        self._faults: list[str] = []
        self._roots: dict[str, tuple[assessment.Models, str]] = {}

    def __call__(self) -> Mapping[str, assessment.Models]:
        """Return the models that are to be used now."""
        files = self._files()
        with self._lock:
            if not self._read:
                self._load()
            for text in self._faults:
                self._report('models', text)
            found = {name: self._chosen(name, models) for name, models in files.items()}
        return found

    def forget(self) -> None:
        """Read the database again: another engine may have led meanwhile."""
        with self._lock:
            self._read = False

    def root(self, host_type: str, models: assessment.Models) -> str:
        """Return what tells of which files these models come."""
        with self._lock:
            refit = self._refits.get(host_type)
            if refit is not None and refit.models is models:
                return refit.root
            return self._root(host_type, models)

    def put(self, term: lease.Term, models: assessment.Models, now: float) -> int:
        """Store a refit and put it to use; return its version.

        :param term: of the engine, which must lead
        :param now: seconds since the epoch
        :raises tracon_watcher.engine.storage.errors.StorageFailed: and nothing has changed
        :raises tracon_watcher.engine.storage.errors.NoLongerLeader: likewise
        """
        kept = [self._stored.add(json.dumps(model.to_document(), allow_nan=False),
                                 documents.REFIT, now) for model in models]
        self._stored.activate(term, [one.id for one in kept])
        root = models.slowdown.training[REFIT][ROOT]
        with self._lock:
            self._refits[models.slowdown.host_type] = _Refit(models, root)
        return kept[0].version

    def _chosen(self, host_type: str, models: assessment.Models) -> assessment.Models:
        refit = self._refits.get(host_type)
        if refit is None or refit.root != self._root(host_type, models):
            return models
        return refit.models

    def _root(self, host_type: str, models: assessment.Models) -> str:
        known = self._roots.get(host_type)
        if known is None or known[0] is not models:
            seals = ' '.join(model.to_document()['checksum'] for model in models)
            known = models, hashlib.sha256(seals.encode()).hexdigest()
            self._roots[host_type] = known
        return known[1]

    def _load(self) -> None:
        try:
            active = [one for one in self._stored.active() if one.origin == documents.REFIT]
        except (storage_errors.StorageFailed, errors.InvalidDocument) as error:
            # What was known before stays in use; the database is asked again in the next cycle.
            self._faults = [f'models that were refitted cannot be read: {error}']
            return
        self._read, self._faults, self._refits = True, [], {}
        pairs: dict[str, dict[str, Any]] = {}
        for one in active:
            pairs.setdefault(one.host_type, {})[one.response] = one
        for host_type, pair in pairs.items():
            try:
                self._refits[host_type] = _restored(host_type, pair)
            except errors.InvalidDocument as error:
                self._faults.append(f'{error}; the files of host type {host_type} are used')


def _restored(host_type: str, pair: Mapping[str, documents.Document]) -> _Refit:
    source = f'the stored refit of host type {host_type}'
    for name in RESPONSES:
        if name not in pair:
            raise errors.InvalidDocument(source, name, None, 'it is missing')
    models = assessment.Models(*(
        store.from_content(pair[name].content, f'{source}, {name}') for name in RESPONSES))
    told = models.slowdown.training.get(REFIT)
    root = told.get(ROOT) if isinstance(told, Mapping) else None
    if not isinstance(root, str):
        raise errors.InvalidDocument(source, f'training.{REFIT}.{ROOT}', root,
                                     'expected the files\' checksum')
    return _Refit(models, root)
